"""Leaving secrets out of an export: each becomes a `${NAME}` reference that the reader fills in."""

import re
from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import SplitResult, urlsplit, urlunsplit

from catalog.domain.dialects.config import ServerEntry

_REFERENCE = re.compile(r"(?:[A-Za-z]+ )?\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_SCHEME = re.compile(r"(?i)(bearer|basic|token|apikey) (?=\S)")
_SENSITIVE = re.compile(r"(?i)pass|secret|token|auth|cred|bearer|cookie|signature|(?:^|[-_.])(?:pat|sig|pw|jwt)$|key")
_ASSIGNMENT = re.compile(r"(?s)(-{0,2}[A-Za-z][A-Za-z0-9_.-]*)=(.*)")
_KNOWN_TOKEN = re.compile(r"(?:sk-|gh[opusr]_|github_pat_|glpat-|xox[a-z]-|AKIA|AIza|hf_|npm_|pypi-|eyJ)[\w.-]{8,}")
_RANDOM_TEXT = re.compile(r"(?=.*[0-9])(?=.*[a-z])(?=.*[A-Z])[\w.~+=-]{20,}|[0-9a-fA-F]{32,}|[0-9a-f-]{36}")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def is_reference(value: str) -> bool:
    """Whether a value only names a secret: `${TOKEN}` or `Bearer ${TOKEN}`."""
    return bool(_REFERENCE.fullmatch(value))


def hide_secrets(server: ServerEntry) -> ServerEntry:
    """The entry with every variable, header and URL parameter, and every argument that looks secret, left out."""
    return replace(
        server,
        args=_hide_in_args(server.args, server.name),
        env={name: _refer(value, name) for name, value in server.env.items()},
        url=_hide_in_address(server.url, server.name),
        headers={name: _refer(value, f"{server.name}_{name}") for name, value in server.headers.items()},
    )


def _refer(value: str, name: str) -> str:
    """A reference in place of a value; the scheme before a credential stays."""
    if not value or is_reference(value):
        return value
    scheme = _SCHEME.match(value)
    return f"{scheme[0] if scheme else ''}${{{_variable_name(name)}}}"


def _variable_name(name: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_")
    plain = plain if re.fullmatch(r"[A-Z][A-Z0-9_]*", name) else plain.upper()
    return plain if plain[:1].isalpha() else f"SECRET_{plain}".rstrip("_")


def _hide_in_args(args: Sequence[str], server: str) -> tuple[str, ...]:
    hidden: list[str] = []
    flag = ""  # a sensitive option whose value is the next argument
    for position, arg in enumerate(args, start=1):
        if flag and not arg.startswith("-"):
            hidden.append(_refer(arg, f"{server}_{flag}"))
        else:
            hidden.append(_hide_in_arg(arg, server, position))
        flag = arg if arg.startswith("-") and "=" not in arg and _SENSITIVE.search(arg) else ""
    return tuple(hidden)


def _hide_in_arg(arg: str, server: str, position: int) -> str:
    assignment = _ASSIGNMENT.fullmatch(arg)
    if assignment:
        name, value = assignment.groups()
        if _SENSITIVE.search(name):
            return f"{name}={_refer(value, f'{server}_{name}')}"
        return f"{name}={_hide_in_arg(value, server, position)}"
    if _ADDRESS.match(arg):
        return _hide_in_address(arg, server)
    return _refer(arg, f"{server}_ARG_{position}") if _looks_secret(arg) or _SCHEME.search(arg) else arg


def _hide_in_address(address: str, server: str) -> str:
    try:
        parts = urlsplit(address)
    except ValueError:
        return _refer(address, f"{server}_URL")
    return urlunsplit(
        parts._replace(
            netloc=_hide_in_host(parts, server),
            path="/".join(_hide_if_secret(segment, f"{server}_PATH") for segment in parts.path.split("/")),
            query="&".join(_hide_in_parameter(pair, server) for pair in parts.query.split("&")),
            fragment=_refer(parts.fragment, f"{server}_FRAGMENT"),
        )
    )


def _hide_in_host(parts: SplitResult, server: str) -> str:
    userinfo, at, host = parts.netloc.rpartition("@")
    return f"{_refer(userinfo, f'{server}_CREDENTIALS')}{at}{host}"


def _hide_in_parameter(pair: str, server: str) -> str:
    name, equals, value = pair.partition("=")
    return f"{name}={_refer(value, f'{server}_{name}')}" if equals else _hide_if_secret(name, f"{server}_QUERY")


def _hide_if_secret(text: str, name: str) -> str:
    return _refer(text, name) if _looks_secret(text) else text


def _looks_secret(text: str) -> bool:
    return bool(_KNOWN_TOKEN.search(text) or _RANDOM_TEXT.fullmatch(text))
