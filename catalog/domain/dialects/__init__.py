"""The three config dialects: parses and renders each."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter

from catalog.domain.choices import Transport
from catalog.domain.dialects import claude, everruns, pizzapi
from catalog.domain.dialects.config import Config, Dialect, Rendered, ServerEntry
from catalog.domain.dialects.keys import name_keys, refuse_misspelt, refuse_near
from catalog.domain.dialects.secrets import hide_secrets, is_reference
from catalog.domain.dialects.servers import find_ignored, parse_servers, render_server
from catalog.domain.errors import InvalidInput
from catalog.domain.policy import Policy
from catalog.domain.problems import Problems
from catalog.domain.values import name_type

__all__ = ["Config", "Dialect", "Rendered", "ServerEntry", "is_reference", "parse", "render"]

ConfigDocument = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class _Grammar:
    mark: str
    is_present: Callable[[ConfigDocument], bool]
    parse: Callable[[ConfigDocument, Problems], dict[str, object]]
    express: Callable[[Policy], dict[str, object] | None]


_GRAMMARS: Mapping[Dialect, _Grammar] = {
    Dialect.PIZZAPI: _Grammar("toolSearch", pizzapi.is_present, pizzapi.parse, pizzapi.express),
    Dialect.CLAUDE: _Grammar("env.ENABLE_TOOL_SEARCH", claude.is_present, claude.parse, claude.express),
    Dialect.EVERRUNS: _Grammar("capabilities", everruns.is_present, everruns.parse, everruns.express),
}
_KNOWN_KEYS = ("mcpServers", "toolSearch", "env", "capabilities")
# A dialect that can say when to defer says it in its own terms, which need not be the policy's.
_WHEN_TO_DEFER = ("mode", "threshold_unit", "threshold", "context_window")


def parse_config(document: object) -> Config:
    """Parse a file of any dialect. Raises InvalidInput with every mistake and its place."""
    if not isinstance(document, Mapping):
        raise InvalidInput.at("", f"the file must hold an object, not {name_type(document)}")
    problems = Problems()
    refuse_near(document, _KNOWN_KEYS, "", problems)
    _refuse_misspelt_variable(document, problems)
    dialect = _detect(document, problems)
    given = document.get("mcpServers")
    servers = parse_servers(given, problems)
    changes = _GRAMMARS[dialect].parse(document, problems) if dialect else None
    problems.raise_if_any()
    _refuse_foreign(document)
    others = name_keys(key for key in document if key not in _KNOWN_KEYS)
    return Config(servers, changes, dialect, find_ignored(given), others)


def render_config(
    dialect: Dialect, servers: Iterable[ServerEntry], policy: Policy, *, secrets: bool = False
) -> Rendered:
    """Render a file. Policy fields it cannot express are left out and named; snapshots have no entry."""
    search = _GRAMMARS[dialect].express(policy)
    written = sorted(
        (server for server in servers if server.transport != Transport.SNAPSHOT), key=attrgetter("name")
    )
    entries = {server.name: render_server(server if secrets else hide_secrets(server)) for server in written}
    document = {**(search or {}), "mcpServers": entries}
    return Rendered(document, _find_left_out(policy, dialect, search))


def _refuse_misspelt_variable(document: ConfigDocument, problems: Problems) -> None:
    env = document.get("env")
    if isinstance(env, Mapping):
        refuse_misspelt(env, (claude.VARIABLE,), "env", problems)


def _refuse_foreign(document: ConfigDocument) -> None:
    """Refuses a document with none of our keys, because importing nothing is no success."""
    env = document.get("env")
    names_variable = isinstance(env, Mapping) and claude.VARIABLE in env
    if names_variable or any(key in document for key in ("mcpServers", "toolSearch", "capabilities")):
        return
    seen = ", ".join(name_keys(document)) or "none"
    raise InvalidInput.at(
        "",
        "has neither servers (mcpServers) nor search settings (toolSearch, env.ENABLE_TOOL_SEARCH or"
        f" capabilities); the keys that were seen: {seen}",
    )


def _detect(document: ConfigDocument, problems: Problems) -> Dialect | None:
    found = [dialect for dialect, grammar in _GRAMMARS.items() if grammar.is_present(document)]
    for other in found[1:]:
        first = _GRAMMARS[found[0]].mark
        problems.add(_GRAMMARS[other].mark, f"marks {other}, but {first} marks {found[0]}: use one of them")
    return found[0] if found else None


def _find_left_out(policy: Policy, dialect: Dialect, search: dict[str, object] | None) -> tuple[str, ...]:
    """The fields that would differ after importing the file into a new policy."""
    changes = _GRAMMARS[dialect].parse(search, Problems()) if search else {}
    wanted, carried = policy.to_mapping(), Policy().change(changes).to_mapping()
    said = ("slug", *_WHEN_TO_DEFER) if search else ("slug",)
    return tuple(name for name in wanted if name not in said and wanted[name] != carried[name])
