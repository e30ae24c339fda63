"""What a call of a tool through the gateway needs, read when it is called: the database has the last word."""

import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.db import connection

from catalog.domain.choices import Transport
from catalog.domain.connection import Connection
from catalog.domain.definitions import is_read_only
from catalog.domain.policy import Policy
from catalog.domain.upstream_calls import Upstream
from catalog.models import OAuthGrant, Server, Tool
from catalog.process_memory import remember
from catalog.services import access_tokens, connections, refresh

_SERVER_FIELDS = ("id", "name", "transport", "command", "url", "sealed", "keeps_no_state")
SETTINGS_KEPT = 500
_ANY_ID = 2**62  # stands for the id in the statement


@dataclass(frozen=True, slots=True)
class CallTarget:
    """A tool that may be called now, by its own name, on its own server."""

    tool: str
    is_read_only: bool
    upstream: Upstream


def read_target(tool_id: int, policy: Policy) -> CallTarget | None:
    """None for a tool that is gone, hidden or locked, or whose server is disabled or a snapshot.

    Raises SealBroken where the server's secrets cannot be read.
    """
    sql, params, place = _write_statement(policy.quarantine)
    with connection.cursor() as cursor:
        cursor.execute(sql, [*params[:place], tool_id, *params[place + 1 :]])
        row = cursor.fetchone()
    if row is None:
        return None
    name, read_only, annotations, grant_id, *of_server = row
    return CallTarget(
        tool=name,
        is_read_only=is_read_only(
            None if read_only is None else bool(read_only),
            json.loads(annotations),
        ),
        upstream=read_upstream(Server(**dict(zip(_SERVER_FIELDS, of_server, strict=True))), grant_id),
    )


@lru_cache
def _write_statement(quarantine: str) -> tuple[str, tuple[Any, ...], int]:
    """The statement, its parameters, and the place of the tool's id among them.

    It is written once: the ORM's work for each call would take twenty times as long as the database's.
    """
    shown = Tool.objects.listed().let_through(quarantine).exclude(server__transport=Transport.SNAPSHOT)
    of_server = [f"server__{name}" for name in _SERVER_FIELDS]
    fields = ("name", "read_only", "annotations", "server__oauth_grant", *of_server)
    sql, params = shown.filter(pk=_ANY_ID).order_by().values_list(*fields).query.sql_with_params()
    return sql, params, params.index(_ANY_ID)


def find_upstream(server_id: int) -> Upstream | None:
    """Of a server that is enabled and can be called. Raises SealBroken likewise."""
    server = Server.objects.refreshable().select_related("oauth_grant").filter(pk=server_id).first()
    if server is None:
        return None
    grant = getattr(server, "oauth_grant", None)
    return read_upstream(server, grant.pk if grant else None)


def read_upstream(server: Server, grant_id: int | None) -> Upstream:
    """`grant_id` is that of a sign-in to the server, if there is one. Raises SealBroken."""
    address, credential = _open_settings(
        server.pk, server.transport, server.command, server.url, server.sealed
    )
    grant = OAuthGrant.objects.filter(pk=grant_id).first() if grant_id else None
    token = access_tokens.find_good_token(grant, address.url) if grant else ""
    if grant is not None and grant.connected_at:  # another account is another lease
        credential = f"{credential}:{grant.connected_at.isoformat()}"
    return Upstream(
        server_id=server.pk,
        name=server.name,
        connection=address,
        credential=credential,
        limits=refresh.limits_of(address),
        rules=refresh.read_rules(),
        keeps_no_state=bool(server.keeps_no_state),
        token=token or "",
        needs_token=token is None,
    )


@lru_cache(maxsize=SETTINGS_KEPT)
def _open_settings(
    server_id: int, transport: str, command: str, url: str, sealed: str
) -> tuple[Connection, str]:
    """The connection, and a digest of it as it is stored: what is sealed anew counts as changed.

    Kept, because unsealing takes longer than reading the row.
    """
    server = Server(id=server_id, transport=transport, command=command, url=url, sealed=sealed)
    stored = "\0".join((transport, command, url, sealed))
    return connections.read_connection(server), hashlib.sha256(stored.encode()).hexdigest()


remember("settings of servers that were called", _open_settings.cache_clear)
