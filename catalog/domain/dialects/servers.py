"""One server of a config file, in the keys that all dialects share."""

import re
from collections.abc import Mapping
from functools import partial
from urllib.parse import urlsplit

from catalog.domain.choices import Kind, Transport
from catalog.domain.connection import why_header_refused
from catalog.domain.dialects.config import ServerEntry
from catalog.domain.dialects.keys import fold_key, name_keys, refuse_misspelt
from catalog.domain.dialects.shapes import Adapted
from catalog.domain.limits import ADDRESS_CHARS, COMMAND_CHARS, COUNT, SERVER_TIMEOUT_SECONDS
from catalog.domain.problems import Problems, join_place
from catalog.domain.values import (
    BadValueError,
    read_choice,
    read_flag,
    read_text,
    read_text_list,
    read_whole_number,
)

# By their letters alone: `streamable-http`, `streamable_http` and `streamableHttp` are one.
_TRANSPORTS: Mapping[str, Transport] = {
    "stdio": Transport.STDIO,
    "http": Transport.HTTP,
    "streamablehttp": Transport.HTTP,
    "shttp": Transport.HTTP,
    "sse": Transport.SSE,
}
# Programs disagree on where the host of such an address ends.
_ODD_IN_URL = re.compile(r"[\x00-\x20\x7f\\]")
_READ_TIMEOUT = partial(read_whole_number, least=1, most=SERVER_TIMEOUT_SECONDS)

# With the twins in snake_case that `Problems.read_key` takes.
_KNOWN_KEYS = (
    *("command", "args", "env", "cwd", "url", "headers", "type", "transport"),
    *("timeoutSeconds", "timeout_seconds", "secretArgs", "secret_args"),
    *("deferLoading", "defer_loading", "alwaysLoad", "always_load", "kind", "enabled", "disabled", "demo"),
    *("keepsNoState", "keeps_no_state"),
)


def parse_server(name: str, adapted: Adapted, place: str, problems: Problems) -> ServerEntry:
    """Keys of other programs are ignored, see `find_ignored`; our keys in another spelling are refused."""
    entry = adapted.entry

    def at(key: str) -> str:
        return join_place(place, adapted.spelled.get(key, key))

    refuse_misspelt(entry, _KNOWN_KEYS, place, problems)
    return ServerEntry(
        name=name,
        transport=_parse_transport(adapted, place, problems),
        command=problems.read(at("command"), entry.get("command"), _read_command, ""),
        args=problems.read(at("args"), entry.get("args") or [], read_text_list, ()),
        env=_parse_texts(entry.get("env"), at("env"), problems),
        url=problems.read(at("url"), entry.get("url"), _read_url, ""),
        headers=_parse_headers(entry.get("headers"), at("headers"), problems),
        cwd=problems.read(at("cwd"), _read_folder(entry), _read_command, ""),
        timeout_seconds=problems.read_key(place, entry, "timeoutSeconds", _READ_TIMEOUT),
        secret_args=problems.read_key(place, entry, "secretArgs", _read_positions) or (),
        defer_loading=parse_defer_loading(entry, place, problems),
        kind=problems.read_key(place, entry, "kind", partial(read_choice, choices=Kind)),
        enabled=parse_enabled(entry, place, problems),
        keeps_no_state=problems.read_key(place, entry, "keepsNoState", read_flag),
        demo=bool(problems.read_key(place, entry, "demo", read_flag)),
    )


def find_ignored(adapted: Adapted) -> tuple[str, ...]:
    """The keys of a server that we do not read."""
    entry = adapted.entry
    unread = (key for key in entry if key not in _KNOWN_KEYS or _is_idle(key, entry))
    return name_keys((*unread, *adapted.unread))


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
    if server.keeps_no_state:
        entry["keepsNoState"] = True
    if server.demo:
        entry["demo"] = True
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


def _parse_transport(adapted: Adapted, place: str, problems: Problems) -> Transport:
    entry = adapted.entry
    has_command, has_url = bool(entry.get("command")), bool(entry.get("url"))
    if has_command == has_url:
        problems.add(place, "needs a command or a url" if not has_command else "has both a command and a url")
    implied = Transport.HTTP if has_url else Transport.STDIO
    key = "type" if entry.get("type") is not None else "transport"
    at = join_place(place, adapted.spelled.get(key, key))
    given = problems.read(at, entry.get(key), _read_transport, None) or implied
    if has_command not in {has_url, given == Transport.STDIO}:
        problems.add(at, f"does not fit a {'command' if has_command else 'url'}")
    return given


def _read_transport(value: object) -> Transport | None:
    if value is None:
        return None
    if isinstance(value, str) and (found := _TRANSPORTS.get(fold_key(value))):
        return found
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


def _parse_headers(given: object, place: str, problems: Problems) -> dict[str, str]:
    headers = _parse_texts(given, place, problems)
    for name in headers:
        if why := why_header_refused(name):
            problems.add(join_place(place, name), why)
    return headers


def _parse_texts(given: object, place: str, problems: Problems) -> dict[str, str]:
    values = problems.read_object(place, given)
    return {
        name: problems.read(join_place(place, name), value, read_text, "") for name, value in values.items()
    }
