"""What a call of a tool through the gateway needs, read when it is called: the database has the last word."""

import hashlib
from dataclasses import dataclass

from catalog.domain.choices import Transport
from catalog.domain.definitions import is_read_only
from catalog.domain.policy import Policy
from catalog.domain.upstream_calls import Upstream
from catalog.models import Server, Tool
from catalog.services import connections, refresh


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
    shown = Tool.objects.listed().let_through(policy.quarantine)
    row = shown.exclude(server__transport=Transport.SNAPSHOT).select_related("server").filter(pk=tool_id)
    tool = row.only("name", "read_only", "annotations", "server").first()
    if tool is None:
        return None
    return CallTarget(
        tool=tool.name,
        is_read_only=is_read_only(tool.read_only, tool.annotations),
        upstream=read_upstream(tool.server),
    )


def find_upstream(server_id: int) -> Upstream | None:
    """Of a server that is enabled and can be called. Raises SealBroken likewise."""
    server = Server.objects.refreshable().filter(pk=server_id).first()
    return None if server is None else read_upstream(server)


def read_upstream(server: Server) -> Upstream:
    connection = connections.read_connection(server)
    return Upstream(
        server_id=server.pk,
        name=server.name,
        connection=connection,
        credential=_digest(server),
        limits=refresh.limits_of(connection),
        rules=refresh.read_rules(),
        keeps_no_state=server.keeps_no_state,
    )


def _digest(server: Server) -> str:
    """Of the settings as they are stored: what is sealed anew counts as changed."""
    parts = "\0".join((server.transport, server.command, server.url, server.sealed))
    return hashlib.sha256(parts.encode()).hexdigest()
