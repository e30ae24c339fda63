"""What servers offer beside their tools, for pages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from catalog.domain.choices import Kind
from catalog.domain.decide import shows_whole
from catalog.models import Policy, Server, ServerFeatures, Tool
from catalog.selectors.facts import read_facts, read_policy

SHOWN_ROWS = 12
SHOWN_CHARS = 300  # of one text


@dataclass(frozen=True, slots=True)
class FeatureRow:
    """A resource, template or prompt; `key` is what requests name it by, empty where that is its name."""

    name: str
    key: str
    description: str


@dataclass(frozen=True, slots=True)
class FeatureList:
    """The first of one kind, which `word` names, and how many there are."""

    word: str
    rows: tuple[FeatureRow, ...]
    count: int

    @property
    def more(self) -> int:
        return self.count - len(self.rows)


@dataclass(frozen=True, slots=True)
class FeaturesOfServer:
    """The lists that are not empty. `policies` are the slugs of those under which agents get them."""

    lists: tuple[FeatureList, ...]
    completes: bool
    policies: tuple[str, ...]


def features_of_server(server: Server) -> FeaturesOfServer | None:
    """None where it offers nothing beside its tools."""
    row = ServerFeatures.objects.filter(server=server).first()
    if row is None or not (row.resources or row.templates or row.prompts):
        return None
    lists = (
        _list("resource", row.resources, "uri"),
        _list("resource template", row.templates, "uriTemplate"),
        _list("prompt", row.prompts, ""),
    )
    return FeaturesOfServer(
        tuple(each for each in lists if each.count), row.completions, tuple(_find_policies(server))
    )


def _find_policies(server: Server) -> list[str]:
    if not server.enabled or server.kind == Kind.BUILTIN:
        return []
    tools = [known.facts for known in read_facts(Tool.objects.listed().filter(server=server))]
    policies = Policy.objects.order_by("slug")
    return [policy.slug for policy in policies if shows_whole(tools, read_policy(policy))]


def _list(word: str, definitions: Sequence[Mapping[str, Any]], key: str) -> FeatureList:
    rows = tuple(_row(definition, key) for definition in definitions[:SHOWN_ROWS])
    return FeatureList(word, rows, len(definitions))


def _row(definition: Mapping[str, Any], key: str) -> FeatureRow:
    texts = (definition["name"], definition.get(key, ""), definition.get("description", ""))
    return FeatureRow(*(text[:SHOWN_CHARS] for text in texts))
