"""What changes a server. Its tools come from a refresh, or from a file."""

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from catalog.access import Role
from catalog.domain.choices import Transport
from catalog.domain.connection import Connection
from catalog.domain.dialects import ServerEntry
from catalog.domain.errors import InvalidInput
from catalog.models import Server
from catalog.models.changes import Action, Subject
from catalog.services import changes, connections, decisions, refresh
from catalog.services.tools import mark_facts_changed


def read_entry(server: Server) -> ServerEntry:
    """A server as a config file has it, secrets included."""
    connection = connections.read_connection(server)
    return ServerEntry(
        name=server.name,
        transport=connection.transport,
        command=connection.command,
        args=connection.args,
        env=connection.env,
        url=connection.url,
        headers=connection.headers,
        defer_loading=server.defer_loading,
    )


def check_entry(*, entry: ServerEntry, actor: changes.Actor) -> None:
    """A command runs on our machine: only admins may define one, and only one that is allowed here."""
    changes.require(actor, Role.EDITOR)
    if entry.transport != Transport.STDIO:
        return
    changes.require(actor, Role.ADMIN)
    place = f"mcpServers.{entry.name}.command"
    if not settings.STDIO_ENABLED:
        raise InvalidInput.at(place, "commands are turned off here (TOOLSEARCH_STDIO)")
    if settings.STDIO_COMMANDS is not None and entry.command not in settings.STDIO_COMMANDS:
        raise InvalidInput.at(place, "is not among the commands allowed here (TOOLSEARCH_STDIO)")


@transaction.atomic
def store_entry(*, entry: ServerEntry, actor: changes.Actor) -> Server:
    """Add the server or give it this address, and ask for its tools. A snapshot of that name becomes one."""
    check_entry(entry=entry, actor=actor)
    server = Server.objects.select_for_update().filter(name=entry.name).first()
    before = describe(server) if server else None
    connection = _connection_of(entry)
    is_same_address = server is not None and connections.read_connection(server) == connection
    if server is None:
        server = Server.objects.create(
            name=entry.name,
            transport=entry.transport,
            command=entry.command,
            url=connections.shown_url(entry.url),
        )
    connections.write_connection(server, connection)
    server.defer_loading = entry.defer_loading
    server.next_refresh_at = timezone.now()
    server.save()
    mark_facts_changed(server.tools.all())
    decisions.request_decisions()
    after = describe(server)
    if before == after and not is_same_address:
        after["secrets"] = "replaced"
    _record(server, actor, before, after)
    refresh.request_refresh(server=server)
    return server


@transaction.atomic
def set_defer_loading(*, server: Server, defer_loading: bool | None, actor: changes.Actor) -> None:
    changes.require(actor, Role.EDITOR)
    row = Server.objects.select_for_update().get(pk=server.pk)
    if row.defer_loading == defer_loading:
        return
    before: dict[str, object] = {"deferLoading": row.defer_loading}
    row.defer_loading = defer_loading
    row.save(update_fields=["defer_loading", "updated_at"])
    mark_facts_changed(row.tools.all())
    decisions.request_decisions()
    _record(row, actor, before, {"deferLoading": defer_loading})


def describe(server: Server) -> dict[str, object]:
    """What the change record keeps of a server: names of secrets, never their values."""
    connection = connections.read_connection(server)
    return {
        "transport": str(server.transport),
        "command": server.command,
        "args": f"{len(connection.args)} arguments" if connection.args else "",
        "env": sorted(connection.env),
        "url": server.url,
        "headers": sorted(connection.headers),
        "deferLoading": server.defer_loading,
    }


def _connection_of(entry: ServerEntry) -> Connection:
    return Connection(
        transport=entry.transport,
        command=entry.command,
        args=entry.args,
        env=entry.env,
        url=entry.url,
        headers=entry.headers,
    )


def _record(
    server: Server, actor: changes.Actor, before: dict[str, object] | None, after: dict[str, object]
) -> None:
    changes.record(
        actor=actor,
        subject=Subject.SERVER,
        name=server.name,
        action=Action.CREATED if before is None else Action.CHANGED,
        before=before,
        after=after,
    )
