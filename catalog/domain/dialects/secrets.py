"""Removes secrets from an export: each becomes a `${NAME}` reference."""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from urllib.parse import urlsplit, urlunsplit

from catalog.domain.dialects.config import ServerEntry
from catalog.domain.marking.mark import MASK
from catalog.domain.references import REFERENCE, names_in

_SCHEME = re.compile(r"(?i:bearer|basic|token|apikey) (?=\S)")
_REFERENCE = re.compile(rf"(?:{_SCHEME.pattern})?\$\{{[A-Za-z_][A-Za-z0-9_]*\}}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HIDDEN = re.compile(r"\$\{SECRET[A-Z0-9_]*\}")  # as `hide_args` writes it
_SENSITIVE_NAME = re.compile(
    r"(?i)secret|passw|token|credential|authorization"
    r"|(?:key|pass|pwd|auth|bearer|cookie|sig|signature|jwt|(?:^|[-_.])pat)$"
)
_ASSIGNMENT = re.compile(r"(?s)(-{0,2}[A-Za-z][A-Za-z0-9_.-]*)(=|: ?)(.*)")
_BLANK = re.compile(r"\s")
# Options whose value sets a variable or a header: secret whatever its name.
_VARIABLE_OPTIONS = frozenset({"-e", "--env"})
_HEADER_OPTIONS = frozenset({"--header"})
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_KNOWN_TOKEN = re.compile(
    r"(?<![A-Za-z0-9])(?:sk-|gh[opusr]_|github_pat_|glpat-|xox[a-z]-|AKIA|AIza|hf_|npm_|pypi-|eyJ)[\w.-]{8,}"
)
_BEARER = re.compile(r"(?i)\b((?:bearer|basic) +)[A-Za-z0-9._~+/=-]{8,}")
_USER_IN_ADDRESS = re.compile(r"(?<=://)[^\s/@]{1,400}(?=@)")
_SENSITIVE_ASSIGNMENT = re.compile(
    # Begins where a word does, and looks at so much of it: a long run of letters would take for ever.
    r"(?i)(?<![\w.-])([\w.-]{0,60}?(?:(?:secret|passw|token|credential|authorization)\w{0,20}"
    r"|key|pwd|auth|cookie|jwt)[\"']?\s?[=:]\s?[\"']?)(?!bearer |basic )[^\s\"',;&}\]]+"
)
_RANDOM_TEXT = re.compile(
    r"(?=.*[0-9])(?=.*[a-z])(?=.*[A-Z])[\w.~+=-]{20,}|[0-9a-fA-F]{32,}|[0-9a-f]{8}-[0-9a-f-]{27}"
)


def is_reference(value: str) -> bool:
    """Whether a value only names a secret: `${TOKEN}` or `Bearer ${TOKEN}`."""
    return bool(_REFERENCE.fullmatch(value))


def is_sensitive_name(name: str) -> bool:
    """Whether a variable, header or option name suggests a secret."""
    return bool(_SENSITIVE_NAME.search(name))


def hide_args(args: Sequence[str], marked: Collection[int] = ()) -> tuple[str, ...]:
    """Arguments with likely secrets replaced, and those at the marked positions."""
    return _hide_in_args(args, "SECRET", marked)


def show_args(args: Sequence[str], marked: Collection[int] = ()) -> tuple[str, ...]:
    """Arguments as people see them: in place of a secret stands a mask."""
    return tuple(
        arg if arg == hidden else _HIDDEN.sub(MASK, hidden)
        for arg, hidden in zip(args, hide_args(args, marked), strict=True)
    )


def mask_tokens(text: str) -> str:
    """Any text with a mask in place of what has the form of a token, of `name=value` under a sensitive name,
    and of the user and password of an address.
    """
    masked = _KNOWN_TOKEN.sub(MASK, text)
    masked = _USER_IN_ADDRESS.sub(MASK, masked)
    masked = _SENSITIVE_ASSIGNMENT.sub(lambda found: found[1] + MASK, masked)
    return _BEARER.sub(lambda found: found[1] + MASK, masked)


def hide_secrets(server: ServerEntry) -> ServerEntry:
    """The entry with variables, headers, URL parameters and likely secret arguments replaced."""
    return replace(
        server,
        args=_hide_in_args(server.args, server.name, server.secret_args),
        env={name: _refer(value, name) for name, value in server.env.items()},
        url=hide_address(server.url, server.name),
        headers={name: _refer(value, server.name, name) for name, value in server.headers.items()},
    )


def _refer(value: str, *name: str) -> str:
    """A reference in place of a value; a scheme such as `Bearer` stays."""
    if not value or is_reference(value):
        return value
    scheme = _SCHEME.match(value)
    return f"{scheme[0] if scheme else ''}${{{_name_variable(*name)}}}"


def _name_variable(*parts: str) -> str:
    """A variable keeps its name; anything else is named after the server and its place."""
    if len(parts) == 1 and _VARIABLE.fullmatch(parts[0]):
        return parts[0]
    name = re.sub(r"[^A-Z0-9]+", "_", "_".join(parts).upper()).strip("_")
    return name if name[:1].isalpha() else f"SECRET_{name}".rstrip("_")


def _hide_in_args(args: Sequence[str], server: str, marked: Collection[int] = ()) -> tuple[str, ...]:
    hidden: list[str] = []
    flag = ""  # a sensitive option whose value is the next argument
    setter = ""  # an option whose next argument sets a variable or a header
    for position, arg in enumerate(args, start=1):
        if position - 1 in marked:
            hidden.append(_refer(arg, server, f"ARG_{position}"))
        elif setter:
            hidden.append(_hide_setting(arg, server, setter))
        elif flag and not arg.startswith("-"):
            hidden.append(_refer(arg, server, flag))
        else:
            hidden.append(_hide_in_arg(arg, server, position))
        flag = arg if arg.startswith("-") and _SENSITIVE_NAME.search(arg) else ""
        setter = arg if arg in _VARIABLE_OPTIONS | _HEADER_OPTIONS else ""
    return tuple(hidden)


def _hide_setting(text: str, server: str, option: str) -> str:
    """`NAME=value` or `Name: value` without its value; a variable's name alone passes that variable on."""
    is_header = option in _HEADER_OPTIONS
    name, sign, value = text.partition(":" if is_header else "=")
    if not sign:
        return _refer(text, server, option) if is_header else text
    blank = value[: len(value) - len(value.lstrip())]
    return f"{name}{sign}{blank}{_refer(value.lstrip(), server, name)}"


def _hide_in_arg(arg: str, server: str, position: int) -> str:
    if _ADDRESS.match(arg):
        return hide_address(arg, server)
    assignment = _ASSIGNMENT.fullmatch(arg)
    if not assignment:
        return _hide_if_secret(arg, server, f"ARG_{position}")
    name, sign, value = assignment.groups()
    if name in _VARIABLE_OPTIONS | _HEADER_OPTIONS:
        return name + sign + _hide_setting(value, server, name)
    is_sensitive = _SENSITIVE_NAME.search(name)
    return (
        name + sign + (_refer(value, server, name) if is_sensitive else _hide_in_arg(value, server, position))
    )


def hide_address(address: str, server: str) -> str:
    """The address without credentials, parameters and likely secret parts of the path."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return _refer(address, server, "URL")
    return urlunsplit(
        parts._replace(
            netloc=_hide_in_host(parts.netloc, server),
            path="/".join(_hide_if_secret(segment, server, "PATH") for segment in parts.path.split("/")),
            query="&".join(_hide_in_parameter(pair, server) for pair in parts.query.split("&")),
            fragment=_refer(parts.fragment, server, "FRAGMENT"),
        )
    )


def _hide_in_host(host_and_user: str, server: str) -> str:
    user, at, host = host_and_user.rpartition("@")
    return f"{_refer(user, server, 'CREDENTIALS')}{at}{host}"


def _hide_in_parameter(pair: str, server: str) -> str:
    name, equals, value = pair.partition("=")
    return f"{name}={_refer(value, server, name)}" if equals else _hide_if_secret(name, server, "QUERY")


def _hide_if_secret(text: str, *name: str) -> str:
    return _refer(text, *name) if _KNOWN_TOKEN.search(text) or _RANDOM_TEXT.fullmatch(text) else text


def show_target(server: ServerEntry) -> str:
    """The command line or address as it will be used, with a mask in place of each secret."""
    hidden = hide_secrets(server)
    known = names_in((server.url, server.command, *server.args))
    words = (hidden.url,) if hidden.url else (hidden.command, *hidden.args)
    masked = (REFERENCE.sub(lambda found: found[0] if found[1] in known else MASK, word) for word in words)
    return " ".join(f"'{word}'" if not word or _BLANK.search(word) else word for word in masked)
