"""The three config dialects: any of them in, any of them out."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter

from catalog.domain.choices import Transport
from catalog.domain.dialects import claude, everruns, pizzapi
from catalog.domain.dialects.config import Config, Dialect, Rendered, ServerEntry
from catalog.domain.dialects.secrets import hide_secrets, is_reference
from catalog.domain.dialects.servers import parse_servers, render_server
from catalog.domain.errors import InvalidInput
from catalog.domain.policy import Policy
from catalog.domain.problems import Problems
from catalog.domain.values import name_type

__all__ = ["Config", "Dialect", "Rendered", "ServerEntry", "is_reference", "parse", "render"]

Document = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class _Grammar:
    mark: str
    is_marked: Callable[[Document], bool]
    parse: Callable[[Document, Problems], dict[str, object]]
    express: Callable[[Policy], dict[str, object] | None]


_GRAMMARS: Mapping[Dialect, _Grammar] = {
    Dialect.PIZZAPI: _Grammar("toolSearch", pizzapi.is_marked, pizzapi.parse, pizzapi.express),
    Dialect.CLAUDE: _Grammar("env.ENABLE_TOOL_SEARCH", claude.is_marked, claude.parse, claude.express),
    Dialect.EVERRUNS: _Grammar("capabilities", everruns.is_marked, everruns.parse, everruns.express),
}
# A dialect that can say when to defer says it in its own terms, which need not be the policy's.
_WHEN_TO_DEFER = ("mode", "threshold_unit", "threshold", "context_window")


def parse(document: object) -> Config:
    """Read a file of any dialect. Raises InvalidInput with every mistake and its place."""
    if not isinstance(document, Mapping):
        raise InvalidInput.at("", f"the file must hold an object, not {name_type(document)}")
    problems = Problems()
    dialect = _detect(document, problems)
    servers = parse_servers(document.get("mcpServers"), problems)
    changes = _GRAMMARS[dialect].parse(document, problems) if dialect else None
    problems.raise_if_any()
    return Config(servers, changes, dialect)


def render(
    dialect: Dialect, servers: Iterable[ServerEntry], policy: Policy, *, secrets: bool = False
) -> Rendered:
    """Write a file. What it cannot say of the policy is left out and named; snapshots have no entry."""
    search = _GRAMMARS[dialect].express(policy)
    written = sorted(
        (server for server in servers if server.transport != Transport.SNAPSHOT), key=attrgetter("name")
    )
    entries = {server.name: render_server(server if secrets else hide_secrets(server)) for server in written}
    document = {**(search or {}), "mcpServers": entries}
    return Rendered(document, _find_left_out(policy, dialect, search))


def _detect(document: Document, problems: Problems) -> Dialect | None:
    found = [dialect for dialect, grammar in _GRAMMARS.items() if grammar.is_marked(document)]
    for other in found[1:]:
        first = _GRAMMARS[found[0]].mark
        problems.add(_GRAMMARS[other].mark, f"marks {other}, but {first} marks {found[0]}: use one of them")
    return found[0] if found else None


def _find_left_out(policy: Policy, dialect: Dialect, search: dict[str, object] | None) -> tuple[str, ...]:
    """The fields that would come back different from importing the file into a new policy."""
    changes = _GRAMMARS[dialect].parse(search, Problems()) if search else {}
    wanted, carried = policy.to_mapping(), Policy().change(changes).to_mapping()
    said = ("slug", *_WHEN_TO_DEFER) if search else ("slug",)
    return tuple(name for name in wanted if name not in said and wanted[name] != carried[name])
