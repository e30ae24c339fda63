"""An offer: every tool that a policy, or a session of it, may see, each with its decision."""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Literal, NamedTuple, TypedDict

from catalog.domain.choices import Outcome, Reason
from catalog.domain.facts import ToolFacts
from catalog.domain.policy import Policy
from catalog.domain.prompt import DeferredServer, write_prompt
from catalog.search.compiled import Compiled
from catalog.search.compiling import compile_documents
from catalog.search.documents import ToolDocument, make_document
from catalog.search.request import Visible
from sessions.offers import fingerprints
from sessions.offers.rendering.columns import Chunk, ToolColumn, cut
from sessions.offers.rendering.pieces import PieceCache
from sessions.offers.rendering.wire import Shape, ToolText
from sessions.offers.versions import Versions

# What a process keeps of written lists, in every form, for all policies and sessions together.
RENDERED_BYTES = 64_000_000
RENDERED = PieceCache(RENDERED_BYTES)
# For `Offer.count_bytes`: measured, rounded up.
OFFER_BYTES = 8_000
OFFERED_TOOL_BYTES = 200
OWN_TEXT_FACTOR = 8  # a session's own definition as text, in every short form, and in an index of its own
OWN_TEXT_BYTES = 4_000

LoadGroup = Literal["always", "deferred"]


class Basis(NamedTuple):
    """The policy's version that was decided, and whether the catalog was past its threshold."""

    policy_version: int
    is_over: bool | None


@dataclass(frozen=True, slots=True)
class OfferedTool:
    text: ToolText
    outcome: Outcome
    reason: Reason

    @property
    def name(self) -> str:
        return self.text.name

    @property
    def is_deferred(self) -> bool:
        return self.outcome == Outcome.DEFER

    def fingerprint(self, servers: Mapping[str, str]) -> int:
        """Hash of everything that is sent of the tool, its server's description included."""
        text = self.text
        return fingerprints.hash_line(
            f"{text.name} {text.digest} {self.outcome} {self.reason} {servers.get(text.server)}"
        )


class Derived(TypedDict, total=False):
    """Values that an offer computes on demand, or takes from an offer that has computed them."""

    fingerprint: int
    always: tuple[OfferedTool, ...]
    deferred: tuple[OfferedTool, ...]
    by_name: dict[str, OfferedTool]
    visible: Visible
    own_index: Compiled | None
    deferred_by_server: Counter[str]
    deferred_servers: dict[str, DeferredServer]
    all_chars: int
    always_chars: int
    stub_chars: int


@dataclass(frozen=True, eq=False)
class Offer:
    """Immutable and shared by every request that sees the same; derived values are computed once.

    `tools` are in order of qualified names; `servers` has a short description of each server; `locked` are
    the tools that quarantine locks; `basis` is what was decided from; `made_of`, for a session with an offer
    of its own, is the digest of its policy's offer.
    """

    policy: Policy
    versions: Versions
    tools: tuple[OfferedTool, ...]
    servers: Mapping[str, str]
    locked: tuple[ToolFacts, ...] = ()
    basis: Basis | None = None
    made_of: str = ""

    def told(self, derived: Derived) -> "Offer":
        """The same, which need not derive these. They must be what it would derive."""
        same = replace(self)
        same.__dict__.update(derived)  # where `cached_property` looks first
        return same

    def sharing(self, *, versions: Versions | None = None, made_of: str | None = None) -> "Offer":
        """The same with other values, and with all that it has derived."""
        same = replace(
            self,
            versions=self.versions if versions is None else versions,
            made_of=self.made_of if made_of is None else made_of,
        )
        same.__dict__.update((name, kept) for name, kept in self.__dict__.items() if name not in _GIVEN)
        return same

    @cached_property
    def fingerprint(self) -> int:
        """Hash of the tools and the servers' descriptions."""
        return fingerprints.add_to_set_hash(tool.fingerprint(self.servers) for tool in self.tools)

    @cached_property
    def digest(self) -> str:
        """Differs whenever anything that is sent may differ."""
        return fingerprints.write_digest(self.policy, self.fingerprint, self.locked)

    @cached_property
    def always(self) -> tuple[OfferedTool, ...]:
        return tuple(tool for tool in self.tools if not tool.is_deferred)

    @cached_property
    def deferred(self) -> tuple[OfferedTool, ...]:
        return tuple(tool for tool in self.tools if tool.is_deferred)

    @property
    def version(self) -> int:
        return self.versions.decided

    @property
    def is_active(self) -> bool:
        return bool(self.deferred)

    @cached_property
    def by_name(self) -> dict[str, OfferedTool]:
        return {tool.name: tool for tool in self.tools}

    @cached_property
    def visible(self) -> Visible:
        """The catalog's tools that may be found; the session's own tools are not in the index."""
        return Visible.of(tool.text.id for tool in self.tools if tool.text.id > 0)

    @cached_property
    def own_index(self) -> Compiled | None:
        """An index of the tools that the session brought along."""
        own = [tool.text for tool in self.tools if tool.text.id < 0]
        return compile_documents([_document(text) for text in own], None) if own else None

    @cached_property
    def deferred_by_server(self) -> Counter[str]:
        return Counter(tool.text.server for tool in self.deferred)

    @cached_property
    def all_chars(self) -> int:
        return sum(tool.text.chars for tool in self.tools)

    @cached_property
    def always_chars(self) -> int:
        return sum(tool.text.chars for tool in self.always)

    @cached_property
    def stub_chars(self) -> int:
        return sum(tool.text.stub_chars for tool in self.deferred)

    def names_meant(self, names: Sequence[str]) -> set[str]:
        """The qualified names that the given names stand for: qualified ones as they are, bare ones as all
        tools with that name.
        """
        qualified = {name for name in names if name in self.by_name}
        bare = set(names) - qualified
        if not bare:
            return qualified
        return qualified | {tool.name for tool in self.tools if tool.text.tool in bare}

    def column(self, which: LoadGroup, shape: Shape) -> ToolColumn:
        """The tools `always` or `deferred`, rendered in one shape."""
        return ToolColumn(self.chunks(which), shape, RENDERED)

    def chunks(self, which: LoadGroup) -> tuple[Chunk, ...]:
        """Depend on the tools alone, so all shapes share them."""
        known = self._chunks
        if which not in known:
            tools = self.always if which == "always" else self.deferred
            known[which] = cut(tool.text for tool in tools)
        return known[which]

    def count_bytes(self) -> int:
        """Estimated memory once everything is derived. Definitions are shared, except a session's own."""
        own = [tool.text for tool in self.tools if tool.text.id < 0]
        prompt_bytes = 4 * self.policy.prompt_budget_tokens if self.is_active else 0
        own_bytes = sum(OWN_TEXT_FACTOR * (text.chars + len(text.more)) + OWN_TEXT_BYTES for text in own)
        return OFFER_BYTES + len(self.tools) * OFFERED_TOOL_BYTES + 3 * prompt_bytes + own_bytes

    def prompt(self, search_name: str) -> str:
        prompts = self._prompts
        if search_name not in prompts:
            policy = replace(self.policy, search_tool_name=search_name)
            prompts[search_name] = write_prompt(list(self.deferred_servers.values()), policy)
        return prompts[search_name]

    @cached_property
    def by_server(self) -> dict[str, list[OfferedTool]]:
        found: dict[str, list[OfferedTool]] = defaultdict(list)
        for tool in self.tools:
            found[tool.text.server].append(tool)
        return dict(sorted(found.items()))

    @cached_property
    def _chunks(self) -> dict[LoadGroup, tuple[Chunk, ...]]:
        """The chunks asked for so far."""
        return {}

    @cached_property
    def _prompts(self) -> dict[str, str]:
        return {}

    @cached_property
    def deferred_servers(self) -> dict[str, DeferredServer]:
        found: dict[str, list[ToolText]] = defaultdict(list)
        for tool in self.deferred:
            found[tool.text.server].append(tool.text)
        return {
            server: DeferredServer(server, tuple(texts), self.servers.get(server, ""))
            for server, texts in found.items()
        }


_GIVEN = frozenset(field.name for field in fields(Offer))


def _document(text: ToolText) -> ToolDocument:
    definition = {
        "name": text.tool,
        "title": text.title,
        "description": text.description,
        "inputSchema": json.loads(text.schema),
    }
    return make_document(definition, id=text.id, qualified_name=text.name, server=text.server, kind=text.kind)
