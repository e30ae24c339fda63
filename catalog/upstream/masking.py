"""Masks secret values of a connection wherever they occur in what is shown."""

import base64
import binascii
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from urllib.parse import parse_qsl, unquote, unquote_plus, urlsplit

from catalog.domain.connection import Connection
from catalog.domain.dialects.secrets import hide_args, is_sensitive_name
from catalog.domain.marking.mark import MASK
from catalog.domain.references import names_of

SHORTEST_SECRET = 4
# What a server says of itself is prose, where a short value is more often a word than a secret.
SHORTEST_SECRET_IN_PROSE = 8
# Values of these are words of protocols, and of the other ones a plain word, address or path is no secret.
PUBLIC_HEADERS = frozenset(
    {"accept", "accept-language", "content-type", "mcp-protocol-version", "origin", "user-agent"}
)
# Users and passwords that programs come with are no secrets, and mostly names that honest texts are full of.
WELL_KNOWN_VALUES = frozenset(
    {
        "postgres",
        "postgresql",
        "password",
        "changeme",
        "rabbitmq",
        "minioadmin",
        "mongoadmin",
        "elastic",
        "superuser",
    }
)
# As whole values, too common in messages to be a secret.
COMMON_WORDS = frozenset({"true", "false", "null", "none"})
_PLAIN = re.compile(
    r"-{0,2}[A-Za-z]+(?:[_-](?:[A-Za-z]+|v?[0-9]{1,2}))*"  # --region, create-issue, eu-west-1
    r"|[a-z]+[0-9]{0,3}(?:_[a-z]+[0-9]{0,3})+"  # get_s3_object
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}"  # the date that names a version
    r"|https?://[^@?#\s]*|[/~]\S*"
)
_BETWEEN_WORDS = re.compile(r"[\s,;|]+")
_BETWEEN_PARTS = re.compile(r"[\s=]+")
_SCHEME = re.compile(r"(?i:bearer|basic|token|apikey) +\S")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_OPTION_NAME = re.compile(r"-{0,2}[A-Za-z][A-Za-z0-9_.-]*(?:=|: ?)")
_JSON_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
# A path is mostly words; only a segment this long is likely to be a key.
SHORTEST_PATH_SECRET = 20


def secrets_of(connection: Connection, referred: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The secrets to mask in errors and on stderr, longest first.

    Every value of a variable or header, and of arguments and the address what looks like a secret: which
    program, package or file runs is none. `referred` are the variables that the settings refer to.
    """
    found = {*_url_values(connection.url), *_values_in_arguments(connection.args, connection.secret_args)}
    for name, value in (*connection.env.items(), *connection.headers.items()):
        if name.lower() not in PUBLIC_HEADERS:
            found.update((value, *_secrets_of_setting(name, value)))
    for name, value in (referred or {}).items():
        found.update(_secrets_of_setting(name, value))
    kept = (value for value in found if len(value) >= SHORTEST_SECRET and value.lower() not in COMMON_WORDS)
    return tuple(sorted(kept, key=lambda value: (-len(value), value)))


def secrets_when_resolved(
    connection: Connection, resolved: Connection, environment: Mapping[str, str]
) -> tuple[str, ...]:
    """The secrets of settings whose references have been resolved, the variables' own values among them."""
    referred = {name: environment.get(name, "") for name in names_of(connection)}
    return secrets_of(resolved, referred)


def secrets_in_texts(connection: Connection) -> tuple[str, ...]:
    """The secrets to mask in a server's own texts and definitions, longest first.

    Every value of a variable or header that is too long to occur by chance, and each part of it, unless it
    consists of plain words, addresses or paths under a name that does not suggest a secret; of arguments and
    the address, what looks like a secret.
    """
    found = set(_secrets_of_address(connection.url))
    for name, value in (*connection.env.items(), *connection.headers.items()):
        found.update(_secrets_of_setting(name, value))
    found.update(_secrets_of_arguments(connection.args, connection.secret_args))
    kept = (value for value in found if len(value) >= SHORTEST_SECRET_IN_PROSE)
    secret = (value for value in kept if value.lower() not in WELL_KNOWN_VALUES)
    return tuple(sorted(secret, key=lambda value: (-len(value), value)))


def mask_within(value: object, *, secrets: Sequence[str]) -> object:
    """A JSON value with every text and key masked. Values that JSON cannot hold are left as they are."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):  # such a definition is rejected later, with the reason
        return value
    if not any(json.dumps(secret, ensure_ascii=False)[1:-1] in text for secret in secrets):
        return value

    def mask(literal: re.Match[str]) -> str:
        return json.dumps(_mask(json.loads(literal[0]), secrets), ensure_ascii=False)

    return json.loads(_JSON_TEXT.sub(mask, text))


def holds_secret(names: Iterable[str], *, secrets: Sequence[str]) -> bool:
    return any(secret in name for name in names for secret in secrets)


def _mask(text: str, secrets: Iterable[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, MASK)
    return text


def present(text: str, *, secrets: Iterable[str]) -> str:
    """The text without secrets, and without NUL, which PostgreSQL cannot store."""
    return _mask(text, secrets).replace("\0", "\N{REPLACEMENT CHARACTER}")


def _forms_of(value: str) -> Iterator[str]:
    """The value, and the secret part of it: `Bearer X`, `--token=X`, `Basic base64(X)`."""
    yield value
    parts = _BETWEEN_PARTS.split(value)
    yield from parts[1:] if _SCHEME.match(value) else parts
    scheme, _, credentials = value.partition(" ")
    if scheme.lower() == "basic":
        try:
            decoded = base64.b64decode(credentials, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            return
        yield decoded
        yield decoded.partition(":")[2]


def _url_values(url: str) -> Iterator[str]:
    try:
        parts = urlsplit(url)
    except ValueError:
        yield url
        return
    userinfo = parts.netloc.rpartition("@")[0]
    yield from (userinfo, unquote(userinfo), *(unquote(part) for part in userinfo.split(":")))
    yield from (parts.query, parts.fragment)
    for _, value in parse_qsl(parts.query, keep_blank_values=True):
        yield value
    for pair in parts.query.split("&"):
        yield pair.partition("=")[2]
    yield from _secrets_of_path(parts.path)


def _is_plain(text: str) -> bool:
    """Whether a text consists of words, addresses and paths that do not look like secrets."""
    words = [word for word in _BETWEEN_WORDS.split(text) if word]
    return all(_PLAIN.fullmatch(word) for word in words) and hide_args(words) == tuple(words)


def _secrets_of_setting(name: str, value: str) -> Iterator[str]:
    if is_sensitive_name(name) or _SCHEME.match(value):
        yield from _forms_of(value)
        return
    if name.lower() in PUBLIC_HEADERS:
        return
    yield from _secrets_of_arguments(value.split())
    parts = _BETWEEN_PARTS.split(value)
    hidden = [part for part in parts if not _is_plain(part)]
    yield from (value, *hidden) if hidden else ()


def _secrets_of_arguments(args: Sequence[str], marked: Collection[int] = ()) -> Iterator[str]:
    """The arguments that look like secrets, and their values without option names."""
    for arg, value in _hidden_arguments(args, marked):
        yield from _secrets_of_address(value) if _ADDRESS.match(value) else (arg, *_forms_of(value))


def _values_in_arguments(args: Sequence[str], marked: Collection[int]) -> Iterator[str]:
    """The same without the option names, which tell where the secret was."""
    for _, value in _hidden_arguments(args, marked):
        yield from _secrets_of_address(value) if _ADDRESS.match(value) else _forms_of(value)


def _hidden_arguments(args: Sequence[str], marked: Collection[int]) -> Iterator[tuple[str, str]]:
    """Each argument that looks like a secret, with its value."""
    for arg, shown in zip(args, hide_args(args, marked), strict=True):
        if arg == shown:
            continue
        value = arg
        while not _ADDRESS.match(value) and (name := _OPTION_NAME.match(value)):
            value = value[name.end() :]
        yield arg, value


def _secrets_of_address(url: str) -> Iterator[str]:
    try:
        parts = urlsplit(url)
    except ValueError:
        yield url
        return
    userinfo = parts.netloc.rpartition("@")[0]
    yield from (userinfo, unquote(userinfo), *(unquote(part) for part in userinfo.split(":")))
    for pair in parts.query.split("&"):
        name, equals, raw = pair.partition("=")
        value = unquote_plus(raw if equals else pair)
        if (equals and is_sensitive_name(name)) or not _is_plain(value):
            yield from (parts.query, pair, raw, value)
    if not _is_plain(unquote(parts.fragment)):
        yield from (parts.fragment, unquote(parts.fragment))
    yield from _secrets_of_path(parts.path)


def _secrets_of_path(path: str) -> Iterator[str]:
    for segment in path.split("/"):
        is_long = len(segment) >= SHORTEST_PATH_SECRET and not _is_plain(unquote(segment))
        if is_long or hide_args((segment,)) != (segment,):
            yield from (segment, unquote(segment))
