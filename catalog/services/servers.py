"""What changes a server. Its tools come from a refresh, or from a file."""

from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from catalog.access import Role
from catalog.domain.choices import Transport
from catalog.domain.connection import Connection
from catalog.domain.dialects import ServerEntry
from catalog.domain.errors import InvalidInput
from catalog.models import Server
from catalog.models.changes import Action, Subject
from catalog.sealing import SealBroken
from catalog.services import changes, connections, decisions, refresh
from catalog.services.tools import mark_facts_changed
from catalog.services.writing import catalog_writing

LEAST_INTERVAL_SECONDS = 10
MOST_INTERVAL_SECONDS = 365 * 86_400


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


def try_read_entry(server: Server) -> ServerEntry | None:
    """None when the secrets cannot be opened any more: then they have to be entered again."""
    try:
        return read_entry(server)
    except SealBroken:
        return None


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


@catalog_writing()
def store_entry(*, entry: ServerEntry, actor: changes.Actor) -> Server:
    """Add the server or give it this address, and ask for its tools. A snapshot of that name becomes one."""
    check_entry(entry=entry, actor=actor)
    server = Server.objects.select_for_update().filter(name=entry.name).first()
    before = describe(server) if server else None
    connection = _connection_of(entry)
    before_entry = try_read_entry(server) if server else None
    is_same_address = before_entry is not None and _connection_of(before_entry) == connection
    if server is None:
        server = Server.objects.create(
            name=entry.name,
            transport=entry.transport,
            command=entry.command,
            url=connections.shown_url(entry.url, entry.name),
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


@catalog_writing()
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


@catalog_writing()
def set_refresh_interval(*, server: Server, seconds: int, actor: changes.Actor) -> None:
    """How often the server is asked for its tools; the next time counts from the last."""
    changes.require(actor, Role.EDITOR)
    if not LEAST_INTERVAL_SECONDS <= seconds <= MOST_INTERVAL_SECONDS:
        raise InvalidInput.at("refresh_interval", "must be from 10 seconds to 365 days")
    row = Server.objects.select_for_update().get(pk=server.pk)
    if row.refresh_interval_seconds == seconds:
        return
    before: dict[str, object] = {"refreshIntervalSeconds": row.refresh_interval_seconds}
    row.refresh_interval_seconds = seconds
    row.next_refresh_at = (row.last_refreshed_at or timezone.now()) + timedelta(seconds=seconds)
    row.save(update_fields=["refresh_interval_seconds", "next_refresh_at", "updated_at"])
    _record(row, actor, before, {"refreshIntervalSeconds": seconds})


def describe(server: Server) -> dict[str, object]:
    """What the change record keeps of a server: names of secrets, never their values."""
    entry = try_read_entry(server)
    return {
        "transport": str(server.transport),
        "command": server.command,
        "args": f"{len(entry.args)} arguments" if entry and entry.args else "",
        "env": sorted(entry.env) if entry else [],
        "url": server.url,
        "headers": sorted(entry.headers) if entry else [],
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
