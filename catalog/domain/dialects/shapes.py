"""The shapes in which MCP clients write their servers, each turned into the keys that `servers.py` reads.

A shape says where a file has its servers and what is peculiar to an entry. What several clients share, other
names for a key or a command with its arguments in one list, is read in every shape.
"""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from catalog.domain.dialects.config import ConfigFormat
from catalog.domain.dialects.keys import fold_key
from catalog.domain.dialects.naming import last_part, name_server
from catalog.domain.problems import Problems, join_place
from catalog.domain.values import name_type

Document = Mapping[str, object]
Entry = dict[str, object]

# Of several the first that is given counts. `httpUrl` goes before `url`, as its client says.
ALIASES = {
    **dict.fromkeys(("httpUrl", "serverUrl", "server_url", "uri"), "url"),
    **dict.fromkeys(("environment", "envs"), "env"),
    **dict.fromkeys(("protocol", "transportType", "transport_type"), "transport"),
    **dict.fromkeys(("http_headers", "httpHeaders"), "headers"),
    "cmd": "command",
}
_ADDRESS_KEYS = ("command", "cmd", "url", "httpUrl", "serverUrl", "uri")
_OPENCODE_TYPES = {"local": "stdio", "remote": None}
# Parts of goose itself: nothing that could be asked for its tools.
_GOOSE_OWN_TYPES = ("builtin", "platform", "frontend")
_ENV_REFERENCE = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}")
_OPENCODE_REFERENCE = re.compile(r"(?<!\$)\{(?:env:([A-Za-z_][A-Za-z0-9_]*)|(file:[^{}]+))\}")
_SHELL_REFERENCE = re.compile(r"((?i:bearer|basic|token) )?\$([A-Z_][A-Z0-9_]*)")


@dataclass(frozen=True, slots=True)
class GivenServer:
    """A server as the file has it: `place` is where, `project` the project it is of.

    `why_refused` says why the entry cannot be a server at all.
    """

    name: str
    place: str
    entry: object
    project: str = ""
    why_refused: str = ""


@dataclass(frozen=True, slots=True)
class Adapted:
    """An entry in our keys. `spelled` has the file's own key for those that it names otherwise.

    `unread` are keys that gave way to others of the same meaning.
    """

    entry: Entry
    spelled: Mapping[str, str] = field(default_factory=dict)
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Shape:
    """`path` leads to the servers; `reads` are keys beside them that are read too."""

    format: ConfigFormat
    path: tuple[str, ...] = ()
    fits: Callable[[object], bool] = lambda section: isinstance(section, Mapping | list)
    adapt: Callable[[Entry, str, Problems], None] = lambda entry, place, problems: None
    reads: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FoundServers:
    """The servers of a file and the shape they are in. `used` are the keys of the file that were read.

    `left_out` are entries that are parts of the client itself.
    """

    shape: Shape
    servers: tuple[GivenServer, ...]
    used: frozenset[str]
    left_out: tuple[str, ...] = ()


def find_servers(document: Document, problems: Problems) -> FoundServers | None:
    """The servers of the first shape that has some; None where the file has no shape that is known."""
    found = [_read_section(shape, document, problems) for shape in SHAPES if _is_in(shape, document)]
    return next((one for one in found if one.servers), found[0] if found else None)


def find_bare(document: Document, beside: Collection[str]) -> FoundServers | None:
    """A document that is itself the servers, by name, or one server. `beside` are keys of search settings.

    Files of other programs have addresses here and there: in a bare document most of the values are servers.
    """
    if _is_one_server(document):
        settings = {"name", *beside} - {"env"}
        entry = {key: value for key, value in document.items() if key not in settings}
        name = document.get("name")
        if not isinstance(name, str) or not name.strip():
            name = name_server(adapt(entry, shape=_BARE, place="", problems=Problems()).entry)
        return FoundServers(_BARE, (GivenServer(name, "", entry),), frozenset(document))
    own = {key: value for key, value in document.items() if isinstance(value, Mapping)}
    count = sum(map(_is_server_like, own.values()))
    if not count or count * 2 < len(document) or any(key in document for key in beside):
        return None
    servers = tuple(GivenServer(name, join_place("", name), entry) for name, entry in own.items())
    return FoundServers(_BARE, servers, frozenset(own))


def adapt(given: Document, *, shape: Shape, place: str, problems: Problems) -> Adapted:
    """The entry of a client's file in our keys, its variables written as `${NAME}`."""
    adapted = adapt_keys(given, shape=shape, place=place, problems=problems)
    entry = adapted.entry
    for key in ("command", "args", "env", "cwd", "url", "headers"):
        if key in entry:
            entry[key] = _read_references(entry[key], shape.format, in_values=key in {"env", "headers"})
    return adapted


def adapt_keys(given: Document, *, shape: Shape, place: str, problems: Problems) -> Adapted:
    adapted = _rename(given)
    _flatten_command(adapted.entry, place, problems)
    shape.adapt(adapted.entry, place, problems)
    _read_type(adapted.entry)
    return adapted


def _is_in(shape: Shape, document: Document) -> bool:
    section = _at(document, shape.path)
    if shape is _MCP_SERVERS:
        return section is not None or any(True for _ in _projects_of(document))
    return section is not None and shape.fits(section)


def _at(document: Document, path: tuple[str, ...]) -> object:
    value: object = document
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _read_section(shape: Shape, document: Document, problems: Problems) -> FoundServers:
    place = ".".join(shape.path)
    section = _at(document, shape.path)
    if section is not None and not isinstance(section, Mapping | list):
        problems.add(place, f"must be an object, not {name_type(section)}")
    servers = list(_list_servers(section, place))
    used = {shape.path[0], *shape.reads}
    if shape is _MCP_SERVERS:
        of_projects = list(_servers_of_projects(document))
        servers += of_projects
        used |= {"projects"} if of_projects else set()
    own = tuple(one.place for one in servers if _is_part_of_client(shape, one.entry))
    kept = [one for one in servers if not _is_part_of_client(shape, one.entry)]
    return FoundServers(shape, tuple(_tell_apart(kept)), frozenset(used), own)


def _list_servers(section: object, place: str, project: str = "") -> Iterator[GivenServer]:
    if isinstance(section, Mapping):
        for name, entry in section.items():
            why = "" if isinstance(entry, Mapping) else f"must be an object, not {name_type(entry)}"
            yield GivenServer(name, join_place(place, name), entry, project, why)
    elif isinstance(section, list):
        for position, entry in enumerate(section):
            yield _read_item(entry, join_place(place, position))


def _read_item(entry: object, place: str) -> GivenServer:
    """A server of a list, which names itself."""
    if not isinstance(entry, Mapping):
        return GivenServer(place, place, entry, why_refused=f"must be an object, not {name_type(entry)}")
    name = entry.get("name")
    if not isinstance(name, str) or not name.strip():
        return GivenServer(place, place, entry, why_refused="needs a name")
    return GivenServer(name, place, {key: value for key, value in entry.items() if key != "name"})


def _projects_of(document: Document) -> Iterator[tuple[str, Document]]:
    projects = document.get("projects")
    for folder, project in projects.items() if isinstance(projects, Mapping) else ():
        servers = project.get("mcpServers") if isinstance(project, Mapping) else None
        if servers and isinstance(servers, Mapping):
            yield folder, project


def _servers_of_projects(document: Document) -> Iterator[GivenServer]:
    for folder, project in _projects_of(document):
        below = join_place(join_place("projects", folder), "mcpServers")
        disabled = project.get("disabledMcpServers")
        for one in _list_servers(project["mcpServers"], below, folder):
            is_disabled = isinstance(disabled, list) and one.name in disabled
            if is_disabled and isinstance(one.entry, Mapping):
                yield replace(one, entry={**one.entry, "disabled": True})
            else:
                yield one


def _tell_apart(servers: list[GivenServer]) -> Iterator[GivenServer]:
    """Of several servers of one name, alike ones are one, and others get their folder's name added."""
    taken: set[str] = set()
    seen: set[tuple[str, str]] = set()
    numbers: dict[str, int] = {}
    for one in servers:
        content = json.dumps(one.entry, sort_keys=True, default=str)
        if (one.name, content) in seen:
            continue
        seen.add((one.name, content))
        name = base = one.name if one.name not in taken else f"{one.name}-{last_part(one.project) or 2}"
        while name in taken:
            numbers[base] = numbers.get(base, 1) + 1
            name = f"{base}-{numbers[base]}"
        taken.add(name)
        yield one if name == one.name else replace(one, name=name)


def _rename(given: Document) -> Adapted:
    entry: Entry = {key: value for key, value in given.items() if key not in ALIASES}
    spelled: dict[str, str] = {}
    unread: list[str] = []
    for alias, key in ALIASES.items():
        value = given.get(alias)
        if value is None:
            continue
        is_first = not entry.get(key) or alias == "httpUrl"
        if not is_first or entry.get(key):
            unread.append(key if is_first else alias)
        if is_first:
            entry[key], spelled[key] = value, alias
    return Adapted(entry, spelled, tuple(unread))


def _flatten_command(entry: Entry, place: str, problems: Problems) -> None:
    """Reads a command that is a list with its arguments, or an object with path, arguments and variables."""
    command = entry.get("command")
    if isinstance(command, list):
        entry["command"] = command[0] if command else None
        later = entry.get("args") or []
        entry["args"] = [*command[1:], *later] if isinstance(later, list) else later
    elif isinstance(command, Mapping):
        entry["command"] = command.get("path")
        for key in ("args", "env"):
            if command.get(key) is not None and not entry.get(key):
                entry[key] = command[key]
        if not command.get("path"):
            problems.add(join_place(place, "command"), "needs a path")


def _read_type(entry: Entry) -> None:
    """`local` and `remote` say what the command or address says; `auto` says nothing."""
    for key in ("type", "transport"):
        value = entry.get(key)
        if isinstance(value, str):
            folded = fold_key(value)
            entry[key] = _OPENCODE_TYPES.get(folded, None if folded in {"", "auto"} else value)


def _read_references(value: object, format_: ConfigFormat, *, in_values: bool) -> object:
    if isinstance(value, str):
        return _read_reference(value, format_, in_values=in_values)
    if isinstance(value, list):
        return [
            _read_reference(one, format_, in_values=False) if isinstance(one, str) else one for one in value
        ]
    if isinstance(value, Mapping):
        return {
            key: _read_reference(one, format_, in_values=in_values) if isinstance(one, str) else one
            for key, one in value.items()
        }
    return value


def _read_reference(text: str, format_: ConfigFormat, *, in_values: bool) -> str:
    """A variable as its client writes it, in the one way that we read: `${NAME}`."""
    text = _ENV_REFERENCE.sub(r"${\1}", text)
    if format_ is ConfigFormat.OPENCODE:
        text = _OPENCODE_REFERENCE.sub(lambda found: f"${{{found[1] or found[2]}}}", text)
    is_shell_like = in_values and format_ in {ConfigFormat.MCP_SERVERS, ConfigFormat.BARE, ConfigFormat.LINE}
    if is_shell_like and (found := _SHELL_REFERENCE.fullmatch(text)):
        return f"{found[1] or ''}${{{found[2]}}}"
    return text


def _add_texts(entry: Entry, key: str, texts: Mapping[str, str]) -> None:
    present = entry.get(key)
    if texts and (present is None or isinstance(present, Mapping)):
        entry[key] = {**texts, **(present or {})}


def _pass_on(entry: Entry, key: str) -> None:
    """Variables that are given by name alone are references."""
    names = entry.get(key)
    if isinstance(names, list) and all(isinstance(name, str) for name in names):
        del entry[key]
        _add_texts(entry, "env", {name: f"${{{name}}}" for name in names})


def _adapt_codex(entry: Entry, place: str, problems: Problems) -> None:
    """Headers by the names of variables that hold them; names of variables that are passed on."""
    variable = entry.pop("bearer_token_env_var", None)
    if isinstance(variable, str):
        _add_texts(entry, "headers", {"Authorization": f"Bearer ${{{variable}}}"})
    elif variable is not None:
        problems.add(join_place(place, "bearer_token_env_var"), f"must be text, not {name_type(variable)}")
    named = problems.read_object(join_place(place, "env_http_headers"), entry.pop("env_http_headers", None))
    _add_texts(entry, "headers", {header: f"${{{name}}}" for header, name in named.items()})
    _pass_on(entry, "env_vars")


def _adapt_zed(entry: Entry, place: str, problems: Problems) -> None:
    is_extension = entry.pop("source", None) == "extension"
    if is_extension or ("settings" in entry and not _is_server_like(entry)):
        problems.add(place, "is an extension of Zed: it has no command and no address that could be asked")


def _adapt_vscode(entry: Entry, place: str, problems: Problems) -> None:
    _write_numbers(entry)


def _adapt_goose(entry: Entry, place: str, problems: Problems) -> None:
    if entry.get("type") == "inline_python":
        problems.add(place, "is Python code that goose runs itself: it has no command and no address")
    entry.pop("name", None)
    _pass_on(entry, "env_keys")
    _write_numbers(entry)


def _write_numbers(entry: Entry) -> None:
    """A variable may be a number, or null: then it is not set."""
    env = entry.get("env")
    if isinstance(env, Mapping):
        entry["env"] = {
            name: str(value) if type(value) in (int, float) else value
            for name, value in env.items()
            if value is not None
        }


def _is_part_of_client(shape: Shape, entry: object) -> bool:
    """Whether an extension of goose is one of its own."""
    if shape.format is not ConfigFormat.GOOSE or not isinstance(entry, Mapping):
        return False
    return entry.get("type") in _GOOSE_OWN_TYPES


def _is_server_like(entry: object) -> bool:
    return isinstance(entry, Mapping) and any(
        isinstance(entry.get(key), str | list | Mapping) for key in _ADDRESS_KEYS
    )


def _is_one_server(document: Document) -> bool:
    command = document.get("command")
    if isinstance(command, Mapping):
        return "path" in command
    return any(isinstance(document.get(key), str | list) for key in _ADDRESS_KEYS)


def _has_opencode_marks(section: object) -> bool:
    entries = section.values() if isinstance(section, Mapping) else ()
    return any(
        isinstance(entry, Mapping)
        and (
            entry.get("type") in ("local", "remote")
            or isinstance(entry.get("command"), list)
            or "environment" in entry
        )
        for entry in entries
    )


def _holds_servers(section: object) -> bool:
    """Not where the servers are a level below, as VS Code has them; `servers` may be a server's name."""
    if not isinstance(section, Mapping):
        return False
    below = section.get("servers")
    return _is_one_server(below) if isinstance(below, Mapping) else not isinstance(below, list)


def _holds_extensions(section: object) -> bool:
    entries = section.values() if isinstance(section, Mapping) else ()
    return any(
        isinstance(entry, Mapping) and ("type" in entry or _is_server_like(entry)) for entry in entries
    )


_BARE = Shape(ConfigFormat.BARE)
LINE = Shape(ConfigFormat.LINE)
_MCP_SERVERS = Shape(ConfigFormat.MCP_SERVERS, ("mcpServers",))
SHAPES = (
    _MCP_SERVERS,
    Shape(ConfigFormat.CODEX, ("mcp_servers",), adapt=_adapt_codex),
    Shape(ConfigFormat.ZED, ("context_servers",), adapt=_adapt_zed),
    Shape(ConfigFormat.OPENCODE, ("mcp", "servers"), fits=_has_opencode_marks),
    Shape(ConfigFormat.OPENCODE, ("mcp",), fits=_holds_servers),
    Shape(ConfigFormat.VSCODE, ("servers",), adapt=_adapt_vscode, reads=("inputs",)),
    Shape(ConfigFormat.VSCODE, ("mcp", "servers"), adapt=_adapt_vscode, reads=("inputs",)),
    Shape(ConfigFormat.VSCODE, ("mcp.servers",), adapt=_adapt_vscode, reads=("inputs",)),
    Shape(ConfigFormat.GOOSE, ("extensions",), fits=_holds_extensions, adapt=_adapt_goose),
)
# How a message says where servers are looked for.
KNOWN_SHAPES = (
    "mcpServers (Claude, Cursor, Cline, Windsurf, Gemini CLI, Roo), servers or mcp.servers (VS Code),"
    " context_servers (Zed), mcp (opencode), mcp_servers (Codex), extensions (goose), or the document itself"
    " as {name: {command or url}}"
)
