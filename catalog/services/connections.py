"""A server's address and secrets: sealed when written, opened only to connect."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from django.conf import settings

from catalog.domain.choices import Transport
from catalog.domain.connection import Connection
from catalog.models import Server
from catalog.sealing import Sealer


@dataclass(frozen=True, slots=True, repr=False)
class Secrets:
    """What is kept encrypted. `query` is the part of the URL after the question mark."""

    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    query: str = ""


def seal_secrets(server: Server, secrets: Secrets) -> str:
    """The text to store in `server.sealed`; bound to the row, so the row must have been saved."""
    if secrets == Secrets():
        return ""
    return _sealer().seal(asdict(secrets), context=_context(server))


def read_secrets(server: Server) -> Secrets:
    if not server.sealed:
        return Secrets()
    opened = _sealer().unseal(server.sealed, context=_context(server))
    return Secrets(
        args=tuple(opened["args"]), env=opened["env"], headers=opened["headers"], query=opened["query"]
    )


def read_connection(server: Server) -> Connection:
    secrets = read_secrets(server)
    return Connection(
        transport=Transport(server.transport),
        command=server.command,
        args=secrets.args,
        env=secrets.env,
        url=f"{server.url}?{secrets.query}" if secrets.query else server.url,
        headers=secrets.headers,
    )


def _sealer() -> Sealer:
    return Sealer(settings.ENCRYPTION_KEYS)


def _context(server: Server) -> str:
    return f"server:{server.pk}"
