"""Config files: the search settings of three dialects, and servers in the shapes of many clients."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter

from catalog.domain.choices import Transport
from catalog.domain.dialects import claude, everruns, lines, pizzapi, shapes
from catalog.domain.dialects.config import Config, ConfigFormat, Dialect, RefusedServer, Rendered, ServerEntry
from catalog.domain.dialects.keys import name_keys, refuse_misspelt, refuse_near
from catalog.domain.dialects.secrets import hide_secrets, is_reference
from catalog.domain.dialects.servers import find_ignored, parse_server, render_server
from catalog.domain.dialects.shapes import Adapted, FoundServers, GivenServer
from catalog.domain.errors import FieldProblem, InvalidInput
from catalog.domain.policy import Policy
from catalog.domain.problems import Problems
from catalog.domain.values import name_type

__all__ = [
    "Config",
    "ConfigFormat",
    "Dialect",
    "RefusedServer",
    "Rendered",
    "ServerEntry",
    "is_reference",
    "parse_config",
    "read_config",
    "read_lines",
    "render_config",
]

ConfigDocument = Mapping[str, object]
Adapt = Callable[..., Adapted]


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
_SETTING_KEYS = ("toolSearch", "env", "capabilities")
_KNOWN_KEYS = ("mcpServers", *_SETTING_KEYS)
# A dialect that can say when to defer says it in its own terms, which need not be the policy's.
_WHEN_TO_DEFER = ("mode", "threshold_unit", "threshold", "context_window")
_LABELS = 100
_LABEL_CHARS = 200


def read_config(document: object) -> Config:
    """Read a file of any dialect and format; servers with mistakes are in `refused`, beside the others.

    Raises InvalidInput for a document that has neither servers nor search settings, and for mistakes that are
    of no single server.
    """
    return _read(document, adapt=shapes.adapt)


def _read(document: object, adapt: Adapt) -> Config:
    if not isinstance(document, Mapping):
        raise InvalidInput.at("", f"the file must hold an object, not {name_type(document)}")
    problems = Problems()
    found = shapes.find_servers(document, problems) or shapes.find_bare(document, _SETTING_KEYS)
    _refuse_near_keys(document, found, problems)
    dialect = _detect(document, problems)
    changes = _GRAMMARS[dialect].parse(document, problems) if dialect else None
    problems.raise_if_any()
    if changes is None and not (found and found.servers):
        raise _explain_nothing(document, found)
    used = {*_SETTING_KEYS, *(found.used if found else ("mcpServers",))}
    others = name_keys((*(key for key in document if key not in used), *(found.left_out if found else ())))
    if found is None:
        return Config((), changes, dialect, ignored_keys=others)
    labels = _read_labels(document) if found.shape.format is ConfigFormat.VSCODE else {}
    config = Config((), changes, dialect, ignored_keys=others, format=found.shape.format, labels=labels)
    return _add_servers(config, found.servers, partial(adapt, shape=found.shape))


def read_lines(text: str) -> Config | None:
    """Read shell lines that add or run servers; None where the text is something else."""
    given = lines.read_lines(text)
    if not given:
        return None
    return _add_servers(
        Config((), None, None, format=ConfigFormat.LINE), given, partial(shapes.adapt, shape=shapes.LINE)
    )


def parse_config(document: object) -> Config:
    """Read a document of our own making, in which nothing may be wrong and a `$` is no client's.

    Raises InvalidInput with every mistake and its place.
    """
    config = _read(document, adapt=shapes.adapt_keys)
    errors = [error for refused in config.refused for error in refused.errors]
    if errors:
        raise InvalidInput(errors)
    return config


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


def _add_servers(config: Config, given: Sequence[GivenServer], adapt: Adapt) -> Config:
    servers: list[ServerEntry] = []
    refused: list[RefusedServer] = []
    ignored: dict[str, tuple[str, ...]] = {}
    for one in given:
        read, keys = _read_server(one, adapt)
        if isinstance(read, ServerEntry):
            servers.append(read)
        else:
            refused.append(read)
        if keys:
            ignored[one.name] = keys
    return replace(
        config,
        servers=tuple(servers),
        refused=tuple(refused),
        ignored=ignored,
        places={one.name: one.place for one in given},
        projects={one.name: one.project for one in given if one.project},
        order=tuple(one.name for one in given),
    )


def _read_server(given: GivenServer, adapt: Adapt) -> tuple[ServerEntry | RefusedServer, tuple[str, ...]]:
    """The server or what is wrong with it, and the keys that are not read."""
    if given.why_refused or not isinstance(given.entry, Mapping):
        errors = (FieldProblem(given.place, given.why_refused),)
        return RefusedServer(given.name, given.place, errors), ()
    problems = Problems()
    adapted = adapt(given.entry, place=given.place, problems=problems)
    # What a client's own peculiarity refuses needs no second reason.
    entry = None if problems.found else parse_server(given.name, adapted, given.place, problems)
    ignored = find_ignored(adapted)
    if entry is None or problems.found:
        return RefusedServer(given.name, given.place, problems.found), ignored
    return entry, ignored


def _read_labels(document: ConfigDocument) -> dict[str, str]:
    """What VS Code would ask its user for, by the placeholder that stands for the answer."""
    below = document.get("mcp")
    inputs = document.get("inputs") or (below.get("inputs") if isinstance(below, Mapping) else None)
    labels = {}
    for one in inputs[:_LABELS] if isinstance(inputs, list) else ():
        if isinstance(one, Mapping) and isinstance(one.get("id"), str):
            text = one.get("description")
            labels[f"input:{one['id']}"] = text[:_LABEL_CHARS] if isinstance(text, str) else ""
    return labels


def _refuse_near_keys(document: ConfigDocument, found: FoundServers | None, problems: Problems) -> None:
    """Keys that are nearly ours. Of a file of another client only our own words count, and of a bare one,
    whose keys are names, none.
    """
    if found is None or found.shape.format is ConfigFormat.MCP_SERVERS:
        refuse_near(document, _KNOWN_KEYS, "", problems)
    elif found.shape.format is not ConfigFormat.BARE:
        others = [key for key in document if key not in found.used]
        refuse_near(others, ("toolSearch",), "", problems)
    env = document.get("env")
    if isinstance(env, Mapping):
        refuse_misspelt(env, (claude.VARIABLE,), "env", problems)


def _explain_nothing(document: ConfigDocument, found: FoundServers | None) -> InvalidInput:
    """Importing nothing is no success."""
    seen = ", ".join(name_keys(document)) or "none"
    own = ", ".join(name_keys(found.left_out)) if found else ""
    parts = f"; parts of the client itself are no servers: {own}" if own else ""
    return InvalidInput.at(
        "",
        f"has no servers and no search settings; the keys that were seen: {seen}{parts}. Servers are read at"
        f" {shapes.KNOWN_SHAPES}; settings at toolSearch, env.ENABLE_TOOL_SEARCH or capabilities",
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
