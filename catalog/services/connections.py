"""A server's address and secrets: encrypted when written, decrypted only to connect."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db.models import QuerySet

from catalog.domain.choices import Transport
from catalog.domain.connection import Connection
from catalog.domain.dialects.secrets import hide_address
from catalog.models import OAuthAttempt, OAuthClient, OAuthGrant, Server
from catalog.sealing import Sealer


@dataclass(frozen=True, slots=True, repr=False)
class Secrets:
    """The encrypted fields, folder and timeout among them. `url` is the whole address where it has more than
    may be shown.
    """

    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    cwd: str = ""
    timeout_seconds: int | None = None
    secret_args: tuple[int, ...] = ()


def write_connection(server: Server, connection: Connection) -> None:
    """Set the row's address and encrypted secrets. Save the row before, for its id, and after."""
    shown = shown_url(connection.url, server.name)
    secrets = Secrets(
        args=connection.args,
        env=connection.env,
        headers=connection.headers,
        url=connection.url if connection.url != shown else "",
        cwd=connection.cwd,
        timeout_seconds=connection.timeout_seconds,
        secret_args=connection.secret_args,
    )
    server.transport, server.command, server.url = connection.transport, connection.command, shown
    server.sealed = "" if secrets == Secrets() else _sealer().seal(asdict(secrets), context=_context(server))


def read_connection(server: Server) -> Connection:
    secrets = _read_secrets(server)
    return Connection(
        transport=Transport(server.transport),
        command=server.command,
        args=secrets.args,
        env=secrets.env,
        url=secrets.url or server.url,
        headers=secrets.headers,
        cwd=secrets.cwd,
        timeout_seconds=secrets.timeout_seconds,
        secret_args=secrets.secret_args,
    )


def rotate_secrets() -> int:
    """Encrypt the secrets of every server and of every sign-in to one with the newest key, so that older keys
    can be dropped. Returns how many servers.
    """
    for rows in (OAuthClient.objects.all(), OAuthGrant.objects.all(), OAuthAttempt.objects.all()):
        _rotate_rows(rows)
    return _rotate_rows(Server.objects.all())


def _rotate_rows(rows: "QuerySet[Any]") -> int:
    found = list(rows.exclude(sealed="").values_list("pk", "sealed"))
    for pk, before in found:
        rows.filter(pk=pk, sealed=before).update(sealed=_sealer().rotate(before))
    return len(found)


def shown_url(url: str, server: str) -> str:
    """The address without user, query and fragment, and without parts of the path that look secret."""
    parts = urlsplit(hide_address(url, server))
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _read_secrets(server: Server) -> Secrets:
    if not server.sealed:
        return Secrets()
    opened = _sealer().unseal(server.sealed, context=_context(server))
    # Earlier versions wrote neither folder nor timeout nor marked arguments.
    return Secrets(
        args=tuple(opened["args"]),
        env=opened["env"],
        headers=opened["headers"],
        url=opened["url"],
        cwd=opened.get("cwd", ""),
        timeout_seconds=opened.get("timeout_seconds"),
        secret_args=tuple(opened.get("secret_args", ())),
    )


def _sealer() -> Sealer:
    return Sealer(settings.ENCRYPTION_KEYS)


def _context(server: Server) -> str:
    return f"server:{server.pk}"
