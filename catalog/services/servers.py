"""What changes a server. Its tools come from a refresh, or from a file."""

from collections.abc import Mapping
from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from catalog.access import Role
from catalog.domain.choices import Kind, Transport
from catalog.domain.connection import Connection
from catalog.domain.dialects import ServerEntry
from catalog.domain.errors import InvalidInput
from catalog.domain.problems import Problems, join_place
from catalog.domain.references import ReferenceRules, new_references
from catalog.domain.server_names import why_refused
from catalog.domain.values import is_storable
from catalog.models import Server
from catalog.models.changes import Action, Subject
from catalog.sealing import SealBroken
from catalog.services import changes, connections, decisions, edits, refresh
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
        kind=Kind(server.kind),
        enabled=server.enabled,
    )


def try_read_entry(server: Server) -> ServerEntry | None:
    """None when the secrets cannot be opened any more: then they have to be entered again."""
    try:
        return read_entry(server)
    except SealBroken:
        return None


def refuse_names(wanted: Mapping[str, str]) -> None:
    """Raises InvalidInput for each name that no new server can have, at the place that is given for it.

    A server that is there keeps the name it has.
    """
    refused = {name: why for name in wanted if (why := why_refused(name))}
    storable = [name for name in refused if is_storable(name)]
    known = set(Server.objects.filter(name__in=storable).values_list("name", flat=True)) if refused else set()
    problems = Problems()
    for name, why in refused.items():
        if name not in known:
            problems.add(wanted[name], why)
    problems.raise_if_any()


def check_entry(*, entry: ServerEntry, server: Server | None, actor: changes.Actor) -> None:
    """A command runs on our machine: only admins may define one, or replace one, and only one that is allowed
    here. A reference reads our environment: only admins may add or change one, to a variable that is allowed.
    """
    changes.require(actor, Role.EDITOR)
    _check_references(entry, try_read_entry(server) if server else None, actor)
    place = join_place("mcpServers", entry.name)
    if entry.transport != Transport.STDIO:
        is_command = server is not None and server.transport == Transport.STDIO
        if is_command and actor.role < Role.ADMIN:
            raise InvalidInput.at(place, "is a server that runs a command: only an admin may replace it")
        return
    changes.require(actor, Role.ADMIN)
    place = f"{place}.command"
    if not settings.STDIO_ENABLED:
        raise InvalidInput.at(place, "commands are turned off here (TOOLSEARCH_STDIO)")
    if settings.STDIO_COMMANDS is not None and entry.command not in settings.STDIO_COMMANDS:
        raise InvalidInput.at(place, "is not among the commands allowed here (TOOLSEARCH_STDIO)")


def _check_references(entry: ServerEntry, stored: ServerEntry | None, actor: changes.Actor) -> None:
    rules = ReferenceRules(allowed=settings.REFERENCES)
    problems = Problems()
    for place, names in new_references(entry, stored).items():
        where = f"{join_place('mcpServers', entry.name)}.{place}"
        if actor.role < Role.ADMIN:
            problems.add(where, f"refers to the variable {names[0]}: only an admin may add or change that")
            continue
        for why in filter(None, map(rules.why_refused, names)):
            problems.add(where, why)
    problems.raise_if_any()


@catalog_writing()
def store_entry(*, entry: ServerEntry, actor: changes.Actor) -> Server:
    """Add the server or give it this address, and ask for its tools unless it is disabled.

    A snapshot of that name becomes one. The kind of a server that is there, and whether it is enabled, stay.
    """
    refuse_names({entry.name: join_place("mcpServers", entry.name)})
    server = Server.objects.select_for_update().filter(name=entry.name).first()
    check_entry(entry=entry, server=server, actor=actor)
    before = describe(server) if server else None
    connection = _connection_of(entry)
    before_entry = try_read_entry(server) if server else None
    is_same_address = before_entry is not None and _connection_of(before_entry) == connection
    if server is not None and not is_same_address:
        _forget_failures(server)
    if server is None:
        server = Server.objects.create(
            name=entry.name,
            transport=entry.transport,
            command=entry.command,
            url=connections.shown_url(entry.url, entry.name),
            kind=entry.kind or Kind.MCP,
            enabled=entry.enabled is not False,
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
    if before != after:
        _record(server, actor, before, after)
    if server.enabled:
        refresh.request_refresh(server=server)
    return server


def _forget_failures(server: Server) -> None:
    """Those of another address say nothing about the present one."""
    server.failures = 0
    server.last_error_code = server.last_error = ""
    server.stale_since = None


@catalog_writing()
def set_defer_loading(
    *,
    server: Server,
    defer_loading: bool | None,
    actor: changes.Actor,
    if_unchanged: edits.Precondition | None = None,
) -> None:
    """Raises OutdatedEdit where the precondition does not hold."""
    changes.require(actor, Role.EDITOR)
    row = Server.objects.select_for_update().get(pk=server.pk)
    edits.require_current(_edit_row(row), if_unchanged, wanted={"deferLoading": defer_loading})
    if row.defer_loading == defer_loading:
        return
    before: dict[str, object] = {"deferLoading": row.defer_loading}
    row.defer_loading = defer_loading
    row.save(update_fields=["defer_loading", "updated_at"])
    mark_facts_changed(row.tools.all())
    decisions.request_decisions()
    _record(row, actor, before, {"deferLoading": defer_loading})


@catalog_writing()
def set_refresh_interval(
    *, server: Server, seconds: int, actor: changes.Actor, if_unchanged: edits.Precondition | None = None
) -> None:
    """How often the server is asked for its tools; the next time counts from the last.

    Raises OutdatedEdit where the precondition does not hold.
    """
    changes.require(actor, Role.EDITOR)
    if not LEAST_INTERVAL_SECONDS <= seconds <= MOST_INTERVAL_SECONDS:
        raise InvalidInput.at("refresh_interval", "must be from 10 seconds to 365 days")
    row = Server.objects.select_for_update().get(pk=server.pk)
    edits.require_current(_edit_row(row), if_unchanged, wanted={"refreshIntervalSeconds": seconds})
    if row.refresh_interval_seconds == seconds:
        return
    before: dict[str, object] = {"refreshIntervalSeconds": row.refresh_interval_seconds}
    row.refresh_interval_seconds = seconds
    row.next_refresh_at = (row.last_refreshed_at or timezone.now()) + timedelta(seconds=seconds)
    row.save(update_fields=["refresh_interval_seconds", "next_refresh_at", "updated_at"])
    _record(row, actor, before, {"refreshIntervalSeconds": seconds})


def version_of(server: Server) -> str:
    """What an edit of the server is made from."""
    return edits.version_of(_edit_row(server).present)


def require_current(*, server: Server, if_unchanged: edits.Precondition | None) -> None:
    """Raises OutdatedEdit where the precondition does not hold. Call while holding the catalog."""
    edits.require_current(_edit_row(server), if_unchanged)


def _edit_row(server: Server) -> edits.Row:
    """Secret values count, and are not told. Where they cannot be opened, they count as they are sealed."""
    entry = try_read_entry(server)
    shown = {
        "kind": str(server.kind),
        "transport": str(server.transport),
        "command": server.command,
        "url": server.url,
        "description": server.description,
        "enabled": server.enabled,
        "deferLoading": server.defer_loading,
        "refreshIntervalSeconds": server.refresh_interval_seconds,
    }
    secrets: dict[str, object] = {"secrets": str(server.sealed)}
    if entry is not None:
        secrets = {"args": list(entry.args), "env": dict(entry.env), "headers": dict(entry.headers)}
        secrets["url"] = entry.url
    return edits.Row(Subject.SERVER, server.name, present={**shown, **secrets}, shown=shown)


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
        **describe_kind(server),
    }


def describe_kind(server: Server) -> dict[str, object]:
    """What is unusual about a server: that it is disabled, or of another kind than most."""
    described: dict[str, object] = {} if server.kind == Kind.MCP else {"kind": str(server.kind)}
    return described if server.enabled else {**described, "enabled": False}


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
