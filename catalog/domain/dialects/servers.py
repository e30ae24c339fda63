"""The `mcpServers` section, which all dialects share."""

import re
from collections.abc import Mapping
from functools import partial
from urllib.parse import urlsplit

from catalog.domain.choices import Kind, Transport
from catalog.domain.connection import why_header_refused
from catalog.domain.dialects.config import ServerEntry
from catalog.domain.dialects.keys import name_keys, refuse_misspelt
from catalog.domain.limits import ADDRESS_CHARS, COMMAND_CHARS, COUNT, SERVER_TIMEOUT_SECONDS
from catalog.domain.problems import Problems, join_place
from catalog.domain.values import (
    BadValueError,
    name_type,
    read_choice,
    read_flag,
    read_text,
    read_text_list,
    read_whole_number,
)

_TRANSPORTS: Mapping[str, Transport] = {
    "stdio": Transport.STDIO,
    "http": Transport.HTTP,
    "streamable-http": Transport.HTTP,
    "streamable_http": Transport.HTTP,
    "streamableHttp": Transport.HTTP,
    "sse": Transport.SSE,
}
# Programs disagree on where the host of such an address ends.
_ODD_IN_URL = re.compile(r"[\x00-\x20\x7f\\]")


_READ_TIMEOUT = partial(read_whole_number, least=1, most=SERVER_TIMEOUT_SECONDS)

# With the twins in snake_case that `Problems.read_key` takes.
_KNOWN_KEYS = (
    *("command", "args", "env", "cwd", "url", "headers", "type", "transport"),
    *("timeoutSeconds", "timeout_seconds", "secretArgs", "secret_args"),
    *("deferLoading", "defer_loading", "alwaysLoad", "always_load", "kind", "enabled", "disabled"),
)


def parse_servers(value: object, problems: Problems) -> tuple[ServerEntry, ...]:
    """Keys of other programs are ignored, see `find_ignored`; our keys in another spelling are refused."""
    servers = problems.read_object("mcpServers", value)
    parsed = (_parse_server(name, entry, problems) for name, entry in servers.items())
    return tuple(server for server in parsed if server)


def find_ignored(value: object) -> dict[str, tuple[str, ...]]:
    """The keys of each server that we do not read, by the server's name."""
    entries = value.items() if isinstance(value, Mapping) else ()
    unknown = {
        name: name_keys(key for key in entry if key not in _KNOWN_KEYS or _is_idle(key, entry))
        for name, entry in entries
        if isinstance(entry, Mapping)
    }
    return {name: keys for name, keys in unknown.items() if keys}


def _is_idle(key: str, entry: Mapping[str, object]) -> bool:
    """Whether a key of ours means nothing beside the others: only a command runs in a folder."""
    return key == "cwd" and not entry.get("command")


def render_server(server: ServerEntry) -> dict[str, object]:
    """The entry of one server, without fields at their defaults."""
    entry: dict[str, object] = {}
    if server.transport in {Transport.HTTP, Transport.SSE}:
        entry["type"] = server.transport.value
    written = {
        "command": server.command,
        "args": list(server.args),
        "env": dict(server.env),
        "url": server.url,
        "headers": dict(server.headers),
        "cwd": server.cwd,
        "timeoutSeconds": server.timeout_seconds,
        "secretArgs": list(server.secret_args),
    }
    entry |= {key: value for key, value in written.items() if value}
    if server.defer_loading is not None:
        entry["deferLoading"] = server.defer_loading
    if server.kind not in {None, Kind.MCP}:
        entry["kind"] = str(server.kind)
    if server.enabled is False:
        entry["enabled"] = False
    return entry


def parse_defer_loading(entry: Mapping[str, object], place: str, problems: Problems) -> bool | None:
    """`alwaysLoad: true` is `deferLoading: false`."""
    defer = problems.read_key(place, entry, "deferLoading", read_flag)
    always = problems.read_key(place, entry, "alwaysLoad", read_flag)
    if always and defer:
        problems.add(join_place(place, "alwaysLoad"), "contradicts deferLoading")
    return False if always else defer


def parse_enabled(entry: Mapping[str, object], place: str, problems: Problems) -> bool | None:
    """`disabled: true` is `enabled: false`; None where neither is given."""
    enabled = problems.read_key(place, entry, "enabled", read_flag)
    disabled = problems.read_key(place, entry, "disabled", read_flag)
    if disabled is not None and enabled is disabled:
        problems.add(join_place(place, "disabled"), "contradicts enabled")
    return enabled if disabled is None else not disabled


def _parse_server(name: str, entry: object, problems: Problems) -> ServerEntry | None:
    place = join_place("mcpServers", name)
    if not isinstance(entry, Mapping):
        problems.add(place, f"must be an object, not {name_type(entry)}")
        return None
    refuse_misspelt(entry, _KNOWN_KEYS, place, problems)
    return ServerEntry(
        name=name,
        transport=_parse_transport(entry, place, problems),
        command=problems.read(join_place(place, "command"), entry.get("command"), _read_command, ""),
        args=problems.read(join_place(place, "args"), entry.get("args") or [], read_text_list, ()),
        env=_parse_texts(entry, "env", place, problems),
        url=problems.read(join_place(place, "url"), entry.get("url"), _read_url, ""),
        headers=_parse_headers(entry, place, problems),
        cwd=problems.read(join_place(place, "cwd"), _read_folder(entry), _read_command, ""),
        timeout_seconds=problems.read_key(place, entry, "timeoutSeconds", _READ_TIMEOUT),
        secret_args=problems.read_key(place, entry, "secretArgs", _read_positions) or (),
        defer_loading=parse_defer_loading(entry, place, problems),
        kind=problems.read_key(place, entry, "kind", partial(read_choice, choices=Kind)),
        enabled=parse_enabled(entry, place, problems),
    )


def _parse_transport(entry: Mapping[str, object], place: str, problems: Problems) -> Transport:
    has_command, has_url = bool(entry.get("command")), bool(entry.get("url"))
    if has_command == has_url:
        problems.add(place, "needs a command or a url" if not has_command else "has both a command and a url")
    implied = Transport.HTTP if has_url else Transport.STDIO
    key = "type" if "type" in entry else "transport"
    given = problems.read(join_place(place, key), entry.get(key), _read_transport, None) or implied
    if has_command not in {has_url, given == Transport.STDIO}:
        problems.add(join_place(place, key), f"does not fit a {'command' if has_command else 'url'}")
    return given


def _read_transport(value: object) -> Transport | None:
    if value is None:
        return None
    if isinstance(value, str) and value in _TRANSPORTS:
        return _TRANSPORTS[value]
    raise BadValueError("must be stdio, http or sse")


def _read_command(value: object) -> str:
    command = "" if value is None else read_text(value)
    if len(command) > COMMAND_CHARS or "\0" in command:
        raise BadValueError(f"must have at most {COMMAND_CHARS:,} characters, none of them NUL")
    return command


def _read_folder(entry: Mapping[str, object]) -> object:
    return None if _is_idle("cwd", entry) else entry.get("cwd")


def _read_positions(value: object) -> tuple[int, ...]:
    """Positions of arguments, from 0."""
    if not isinstance(value, list) or not all(type(one) is int and 0 <= one <= COUNT for one in value):
        raise BadValueError("must be a list of positions, from 0")
    return tuple(sorted(set(value)))


def _read_url(value: object) -> str:
    url = "" if value is None else read_text(value)
    if url and not _is_web_address(url):
        raise BadValueError("must be an http or https address")
    return url


def _is_web_address(url: str) -> bool:
    if len(url) > ADDRESS_CHARS or _ODD_IN_URL.search(url):
        return False
    if url.startswith("${"):
        return True
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.netloc)


def _parse_headers(entry: Mapping[str, object], place: str, problems: Problems) -> dict[str, str]:
    headers = _parse_texts(entry, "headers", place, problems)
    for name in headers:
        if why := why_header_refused(name):
            problems.add(join_place(join_place(place, "headers"), name), why)
    return headers


def _parse_texts(entry: Mapping[str, object], key: str, place: str, problems: Problems) -> dict[str, str]:
    below = join_place(place, key)
    values = problems.read_object(below, entry.get(key))
    return {
        name: problems.read(join_place(below, name), value, read_text, "") for name, value in values.items()
    }
