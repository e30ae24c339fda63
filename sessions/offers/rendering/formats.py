"""The formats in which a tool list can be asked for."""

from dataclasses import dataclass
from enum import StrEnum


class Format(StrEnum):
    MCP = "mcp"
    ANTHROPIC = "anthropic"
    OPENAI = "openai"
    STUB = "stub"
    AUTO = "auto"


class Hosted(StrEnum):
    """Who searches: our own search tool, or the provider's."""

    NO = "false"
    YES = "true"
    BM25 = "bm25"
    REGEX = "regex"


class Discovered(StrEnum):
    """How the formats list discovered tools: leave them to the conversation, or list them in full."""

    DEFAULT = "default"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class ListForm:
    """The format asked for; `auto` is resolved before rendering."""

    format: Format = Format.MCP
    hosted: Hosted = Hosted.NO
    discovered: Discovered = Discovered.DEFAULT

    @property
    def key(self) -> str:
        """Identifies the form."""
        return f"{self.format}-{self.hosted}-{self.discovered}"

    @property
    def is_hosted(self) -> bool:
        return self.hosted is not Hosted.NO and self.format in {Format.ANTHROPIC, Format.OPENAI}


@dataclass(frozen=True, slots=True)
class ModelAbility:
    """A model's provider format, and whether the provider searches itself."""

    provider: str
    hosted_search: bool
    context_window: int | None = None


def resolve_auto(form: ListForm, ability: ModelAbility | None) -> ListForm:
    """`auto` is the provider's hosted form where the model supports it, else `mcp`."""
    if form.format is not Format.AUTO:
        return form
    if ability is None or not ability.hosted_search or ability.provider not in {"anthropic", "openai"}:
        return ListForm(Format.MCP, Hosted.NO, form.discovered)
    hosted = Hosted.YES if form.hosted is Hosted.NO else form.hosted
    return ListForm(Format(ability.provider), hosted, form.discovered)
