"""Keeps secret values out of what is shown: anything a definition gave is hidden wherever it turns up."""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from urllib.parse import parse_qsl, unquote, urlsplit

from catalog.domain.connection import Connection

MASK = "•••"
SHORTEST_SECRET = 4
# What a server says of itself is prose, where a short value is more often a word than a secret.
SHORTEST_SECRET_IN_PROSE = 8
# A path is mostly words; only a segment this long is likely to be a key.
SHORTEST_PATH_SECRET = 20


def secrets_of(connection: Connection) -> tuple[str, ...]:
    """Every value of a resolved connection that must not be shown, longest first."""
    found = set(_values_of(connection))
    return tuple(sorted((v for v in found if len(v) >= SHORTEST_SECRET), key=lambda v: (-len(v), v)))


def secrets_in_prose(connection: Connection) -> tuple[str, ...]:
    """Those to hide in a server's name and instructions: not its arguments, which often name the server."""
    without_args = replace(connection, args=())
    return tuple(secret for secret in secrets_of(without_args) if len(secret) >= SHORTEST_SECRET_IN_PROSE)


def present(text: str, *, secrets: Iterable[str]) -> str:
    """The text without the secrets, and without NUL, which PostgreSQL cannot store."""
    for secret in secrets:
        text = text.replace(secret, MASK)
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


def _values_of(connection: Connection) -> Iterator[str]:
    for value in (*connection.args, *connection.env.values(), *connection.headers.values()):
        yield from _forms_of(value)
    yield from _url_values(connection.url)


def _forms_of(value: str) -> Iterator[str]:
    """The value, and the part of it that is the secret: `Bearer X`, `--token=X`, `Basic base64(X)`."""
    yield value
    yield from re.split(r"[\s=]+", value)
    scheme, _, credentials = value.partition(" ")
    if scheme.lower() == "basic":
        try:
            decoded = base64.b64decode(credentials, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            return
        yield decoded
        yield decoded.partition(":")[2]


def _url_values(url: str) -> Iterator[str]:
    parts = urlsplit(url)
    userinfo = parts.netloc.rpartition("@")[0]
    yield from (userinfo, unquote(userinfo), *(unquote(part) for part in userinfo.split(":")))
    yield from (parts.query, parts.fragment)
    for _, value in parse_qsl(parts.query, keep_blank_values=True):
        yield value
    for pair in parts.query.split("&"):
        yield pair.partition("=")[2]
    for segment in parts.path.split("/"):
        if len(segment) >= SHORTEST_PATH_SECRET:
            yield from (segment, unquote(segment))
