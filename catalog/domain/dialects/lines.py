"""Shell lines that add a server to a client, or start one. They are read; no shell ever sees them.

`claude mcp add`, `codex mcp add` and `gemini mcp add` with their options, a line that runs a package or an
image, and an address alone.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from catalog.domain.dialects.naming import last_part, name_server, passed_variables
from catalog.domain.dialects.shapes import Entry, GivenServer

_ADDRESS = re.compile(r"(?i)https?://\S+")
_PROMPT = re.compile(r"^\s*(?:\$|>|%|PS>)\s+")
_CONTINUED = re.compile(r"[ \t]*\\\n[ \t]*")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
# Signs by which a shell would do more than start one program.
_OPERATORS = frozenset({"|", "||", "&", "&&", ";", ">", ">>", "<", "<<"})
_SUBSTITUTION = re.compile(r"\$\(|`")
_SHELL_VARIABLE = re.compile(r"\$([A-Z_][A-Z0-9_]*)")
_CLIENTS = ("claude", "codex", "gemini")
_PROGRAMS = frozenset(
    (
        *("npx", "uvx", "bunx", "pipx", "docker", "podman", "uv", "pnpm", "yarn", "bun", "deno", "npm"),
        *("node", "python", "python3"),
    )
)
_OPTIONS_WITH_VALUE = {
    "-t": "transport",
    "--transport": "transport",
    "-e": "env",
    "--env": "env",
    "-H": "header",
    "--header": "header",
    "--url": "url",
    "--bearer-token-env-var": "bearer",
    **dict.fromkeys(("-s", "--scope", "--timeout", "--description", "--include-tools"), ""),
    **dict.fromkeys(("--exclude-tools", "--client-id", "--client-secret", "--callback-port"), ""),
}
_OPTIONS_WITHOUT_VALUE = frozenset({"--trust"})


class _BadLineError(ValueError):
    """A line that adds no server; the message says why."""


def read_lines(text: str) -> tuple[GivenServer, ...]:
    """The servers of the lines, in our keys; empty where the first line is none that is known.

    A line that cannot be read is a server that is refused, named by its number.
    """
    found = list(_split(text.replace("\r\n", "\n")))
    if not found or not _is_known(found[0][1]):
        return ()
    servers: list[GivenServer] = []
    taken: set[str] = set()
    for number, line in found:
        place = f"line {number}"
        try:
            name, entry = _read_line(line)
        except _BadLineError as error:
            servers.append(GivenServer(place, place, None, why_refused=str(error)))
            continue
        free, count = name, 1
        while free in taken:
            count += 1
            free = f"{name}-{count}"
        taken.add(free)
        servers.append(GivenServer(free, place, entry))
    return tuple(servers)


def _split(text: str) -> Iterator[tuple[int, str]]:
    """The lines with their numbers, without comments, prompts and empty ones; continued ones are one."""
    number = 1
    for whole in re.split(r"(?<!\\)\n", text):
        line = _PROMPT.sub("", _CONTINUED.sub(" ", whole)).strip()
        if line and not line.startswith("#"):
            yield number, line
        number += whole.count("\n") + 1


def _is_known(line: str) -> bool:
    if _ADDRESS.fullmatch(line.strip("\"'<>")):
        return True
    words = line.split()
    while words and _ASSIGNMENT.fullmatch(words[0]) and len(words) > 1:
        words = words[1:]
    program = last_part(words[0])
    if program in _CLIENTS:
        return len(words) > 2 and words[1] == "mcp"
    return program in _PROGRAMS and len(words) > 1 and words[1] not in {"=", ":"}


def _read_line(line: str) -> tuple[str, Entry]:
    address = line.strip("\"'<>")
    if _ADDRESS.fullmatch(address):
        return name_server({"url": address}), {"url": address}
    words = _split_words(line)
    if last_part(words[0]) in _CLIENTS and words[1:2] == ["mcp"]:
        return _read_client_line(words)
    env: dict[str, str] = {}
    while words and _ASSIGNMENT.fullmatch(words[0]):
        name, _, value = words.pop(0).partition("=")
        env[name] = value
    if not words or last_part(words[0]) not in _PROGRAMS:
        raise _BadLineError("is no line that adds or starts a server")
    entry = _make_command(words, env)
    return name_server(entry), entry


def _split_words(line: str) -> list[str]:
    if _SUBSTITUTION.search(line):
        raise _BadLineError("has a command inside the command, which only a shell could read")
    try:
        words = shlex.split(line)
    except ValueError:
        raise _BadLineError("has a quote that does not end") from None
    operator = next((word for word in words if word in _OPERATORS or word.endswith(";")), None)
    if operator:
        raise _BadLineError("is more than one command: give each on a line of its own")
    return [_SHELL_VARIABLE.sub(r"${\1}", word) for word in words] or [""]


def _make_command(words: list[str], env: Mapping[str, str]) -> Entry:
    """A program with its arguments; a container gets the variables that it is to pass on."""
    command, *args = words
    passed = passed_variables(args) if last_part(command) in {"docker", "podman"} else []
    return {"command": command, "args": args, "env": {**{name: f"${{{name}}}" for name in passed}, **env}}


@dataclass
class _ClientLine:
    """What the options of a client's line have said so far."""

    words: list[str] = field(default_factory=list)  # name, then command or address, then arguments
    transport: str = ""
    url: str = ""
    env: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def is_command(self) -> bool:
        """Whether a program was named: all that follows is its own."""
        return len(self.words) > 1 and not _ADDRESS.fullmatch(self.words[1])

    def take(self, meaning: str, value: str) -> None:
        if meaning == "transport":
            self.transport = value
        elif meaning == "url":
            self.url = value
        elif meaning == "bearer":
            self.headers["Authorization"] = f"Bearer ${{{value}}}"
        elif meaning == "env":
            self._take_pair(value, "=", self.env, "a variable needs NAME=value after -e")
        elif meaning == "header":
            self._take_pair(value, ":", self.headers, "a header needs Name: value")

    def _take_pair(self, text: str, sign: str, into: dict[str, str], otherwise: str) -> None:
        name, found, value = text.partition(sign)
        if not found or not name.strip():
            raise _BadLineError(otherwise)
        into[name.strip()] = value.strip() if sign == ":" else value


def _read_client_line(words: list[str]) -> tuple[str, Entry]:
    action, rest = words[2] if len(words) > 2 else "", words[3:]
    if action == "add-json":
        return _read_json_line(rest)
    if action != "add":
        raise _BadLineError(f"does not add a server: {' '.join(words[:3])[:40]}")
    line = _ClientLine()
    while rest:
        word = rest.pop(0)
        if word == "--":
            line.words += rest
            break
        if line.is_command or not word.startswith("-"):
            line.words.append(word)
            continue
        _read_option(word, rest, line)
    return _make_server(line)


def _read_option(word: str, rest: list[str], line: _ClientLine) -> None:
    option, equals, value = word.partition("=")
    if option in _OPTIONS_WITHOUT_VALUE:
        return
    if option not in _OPTIONS_WITH_VALUE:
        raise _BadLineError(f"has an option that is not known: {option[:40]}")
    if not equals and not rest:
        raise _BadLineError(f"ends after {option[:40]}, which needs a value")
    meaning = _OPTIONS_WITH_VALUE[option]
    line.take(meaning, value if equals else rest.pop(0))
    while meaning == "env" and rest and _ASSIGNMENT.fullmatch(rest[0]):  # one option, several variables
        line.take(meaning, rest.pop(0))


def _make_server(line: _ClientLine) -> tuple[str, Entry]:
    if not line.words:
        raise _BadLineError("names no server")
    name, *target = line.words
    url = line.url or (target[0] if target and _ADDRESS.fullmatch(target[0]) else "")
    if not target and not url:
        raise _BadLineError("has no command and no address after the name")
    entry: Entry = {"url": url, "env": line.env} if url else _make_command(target, line.env)
    if line.transport:
        entry["type"] = line.transport
    if line.headers:
        entry["headers"] = line.headers
    return name, {key: value for key, value in entry.items() if value}


def _read_json_line(words: list[str]) -> tuple[str, Entry]:
    given = [word for word in words if word[:1] != "-" and word not in {"local", "user", "project"}]
    try:
        name, text = given
        entry = json.loads(text)
    except (ValueError, RecursionError):
        raise _BadLineError("needs a name and the server as JSON") from None
    if not isinstance(entry, dict):
        raise _BadLineError("needs a name and the server as a JSON object")
    return name, entry
