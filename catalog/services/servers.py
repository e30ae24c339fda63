"""Adds and changes servers. Their tools come from a refresh or a file."""

from collections.abc import Iterable, Mapping
from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from catalog.access import actors
from catalog.access.roles import Role
from catalog.domain.choices import Kind, Transport
from catalog.domain.connection import Connection
from catalog.domain.destinations import is_same_destination
from catalog.domain.dialects import ServerEntry
from catalog.domain.dialects.secrets import show_args
from catalog.domain.errors import InvalidInput
from catalog.domain.limits import DESCRIPTION_CHARS
from catalog.domain.problems import Problems, join_place
from catalog.domain.references import ReferenceRules, new_references
from catalog.domain.server_names import why_name_refused
from catalog.domain.values import is_storable
from catalog.models import CatalogVersion, Change, Server
from catalog.models.changes import Action, Subject
from catalog.sealing import SealBroken
from catalog.services import (
    changes,
    connections,
    decisions,
    derived_state,
    edits,
    grant_endings,
    oauth_clients,
    refresh,
    saved_queries,
)
from catalog.services.catalog_lock import lock_catalog
from catalog.services.tools import mark_facts_changed, rename_tools

LEAST_INTERVAL_SECONDS = 10
MOST_INTERVAL_SECONDS = 365 * 86_400


def read_entry(server: Server) -> ServerEntry:
    """The server as a config entry, secrets included."""
    connection = connections.read_connection(server)
    return ServerEntry(
        name=server.name,
        transport=connection.transport,
        command=connection.command,
        args=connection.args,
        env=connection.env,
        url=connection.url,
        headers=connection.headers,
        cwd=connection.cwd,
        timeout_seconds=connection.timeout_seconds,
        secret_args=connection.secret_args,
        defer_loading=server.defer_loading,
        kind=Kind(server.kind),
        enabled=server.enabled,
        keeps_no_state=server.keeps_no_state,
        demo=server.demo,
    )


def try_read_entry(server: Server) -> ServerEntry | None:
    """None when the secrets cannot be decrypted any more: then they must be entered again."""
    try:
        return read_entry(server)
    except SealBroken:
        return None


def refuse_names(wanted: Mapping[str, str]) -> None:
    """Raises InvalidInput for each name that a new server cannot have, at the given place.

    An existing server keeps its name.
    """
    problems = Problems()
    for name, why in find_refused_names(wanted).items():
        problems.add(wanted[name], why)
    problems.raise_if_any()


def find_refused_names(names: Iterable[str]) -> dict[str, str]:
    """Why, for each name that a new server cannot have and no server has."""
    refused = {name: why for name in names if (why := why_name_refused(name))}
    storable = [name for name in refused if is_storable(name)]
    known = set(Server.objects.filter(name__in=storable).values_list("name", flat=True)) if refused else set()
    return {name: why for name, why in refused.items() if name not in known}


def check_entry(*, entry: ServerEntry, server: Server | None, actor: actors.Actor) -> None:
    """Checks permissions. A command runs on our machine: only admins may add or change one, and only allowed
    ones; a stored one may stay, since the worker checks again before it runs it. A reference reads our
    environment: only admins may add or change one, to an allowed variable. Of a server that keeps no state
    agents share a connection: that is for admins to say.
    """
    actors.require(actor, Role.EDITOR)
    stored = try_read_entry(server) if server else None
    _check_references(entry, stored, actor)
    place = join_place("mcpServers", entry.name)
    was_stateless = server is not None and server.keeps_no_state
    if entry.keeps_no_state not in (None, was_stateless) and actor.role < Role.ADMIN:
        raise InvalidInput.at(f"{place}.keepsNoState", "can be changed by admins only")
    if entry.transport != Transport.STDIO:
        is_command = server is not None and server.transport == Transport.STDIO
        if is_command and actor.role < Role.ADMIN:
            raise InvalidInput.at(place, "is a server that runs a command: only an admin may replace it")
        return
    actors.require(actor, Role.ADMIN)
    if stored is not None and connection_of(stored) == connection_of(entry):
        return
    place = f"{place}.command"
    if not settings.STDIO_ENABLED:
        raise InvalidInput.at(place, "commands are turned off here (TOOLSEARCH_STDIO)")
    if settings.STDIO_COMMANDS is not None and entry.command not in settings.STDIO_COMMANDS:
        raise InvalidInput.at(place, "is not among the commands allowed here (TOOLSEARCH_STDIO)")


def _check_references(entry: ServerEntry, stored: ServerEntry | None, actor: actors.Actor) -> None:
    """A reference's value belongs to the destination too: below admin it is not sent to another."""
    if actor.role < Role.ADMIN and stored and not is_same_destination(entry, stored, with_path=True):
        stored = None
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


@lock_catalog()
def store_entry(*, entry: ServerEntry, actor: actors.Actor, is_recorded: bool = True) -> Server:
    """Add the server or change its address, and request a refresh unless it is disabled.

    A snapshot server of that name becomes a connected one. An existing server's kind and `enabled` stay. A
    demo server of that name is replaced by a new one, unless the entry is the demo's own. Whoever records
    many servers in one change takes `is_recorded` away.
    """
    refuse_names({entry.name: join_place("mcpServers", entry.name)})
    if not entry.demo:
        replace_demo_server(entry.name)
    server = Server.objects.select_for_update().filter(name=entry.name).first()
    check_entry(entry=entry, server=server, actor=actor)
    before = describe_server(server) if server else None
    connection = connection_of(entry)
    before_entry = try_read_entry(server) if server else None
    is_same_address = before_entry is not None and connection_of(before_entry) == connection
    if server is not None and not is_same_address:
        _forget_address(server, before_entry, entry)
    if server is None:
        server = Server.objects.create(
            name=entry.name,
            transport=entry.transport,
            command=entry.command,
            url=connections.shown_url(entry.url, entry.name),
            kind=entry.kind or Kind.MCP,
            enabled=entry.enabled is not False,
            demo=entry.demo,
        )
    connections.write_connection(server, connection)
    server.defer_loading = entry.defer_loading
    if entry.keeps_no_state is not None:
        server.keeps_no_state = entry.keeps_no_state
    server.next_refresh_at = timezone.now()
    server.save()
    mark_facts_changed(server.tools.all())
    decisions.request_decisions()
    after = describe_server(server)
    if before == after and not is_same_address:
        after["secrets"] = "replaced"
    if is_recorded and before != after:
        changes.record_change(
            actor=actor,
            subject=Subject.SERVER,
            name=server.name,
            action=Action.CREATED if before is None else Action.CHANGED,
            before=before,
            after=after,
        )
    if server.enabled:
        refresh.request_refresh(server=server)
    return server


def _forget_address(server: Server, stored: ServerEntry | None, entry: ServerEntry) -> None:
    """Clear the failures of the former address, and end the sign-in to it."""
    if stored is None or stored.url != entry.url:
        is_same_host = stored is not None and is_same_destination(entry, stored, with_path=False)
        grant_endings.forget_address(server, keeps_client=is_same_host)
    server.failures = 0
    server.last_error_code = server.last_error = ""
    server.stale_since = None


@lock_catalog()
def set_defer_loading(
    *,
    server: Server,
    defer_loading: bool | None,
    actor: actors.Actor,
    if_unchanged: edits.Precondition | None = None,
) -> Change | None:
    """None where it is so already. Raises OutdatedEdit where the precondition does not hold."""
    actors.require(actor, Role.EDITOR)
    row = Server.objects.select_for_update().get(pk=server.pk)
    edits.require_current(_edit_row(row), if_unchanged, wanted={"deferLoading": defer_loading})
    if row.defer_loading == defer_loading:
        return None
    before: dict[str, object] = {"deferLoading": row.defer_loading}
    row.defer_loading = defer_loading
    row.save(update_fields=["defer_loading", "updated_at"])
    mark_facts_changed(row.tools.all())
    decisions.request_decisions()
    return _record(row, actor, before, {"deferLoading": defer_loading})


@lock_catalog()
def set_refresh_interval(
    *, server: Server, seconds: int, actor: actors.Actor, if_unchanged: edits.Precondition | None = None
) -> Change | None:
    """How often the server is asked for its tools; the next time counts from the last.

    None where it is so already. Raises OutdatedEdit where the precondition does not hold.
    """
    actors.require(actor, Role.EDITOR)
    if not LEAST_INTERVAL_SECONDS <= seconds <= MOST_INTERVAL_SECONDS:
        raise InvalidInput.at("refresh_interval", "must be from 10 seconds to 365 days")
    row = Server.objects.select_for_update().get(pk=server.pk)
    edits.require_current(_edit_row(row), if_unchanged, wanted={"refreshIntervalSeconds": seconds})
    if row.refresh_interval_seconds == seconds:
        return None
    before: dict[str, object] = {"refreshIntervalSeconds": row.refresh_interval_seconds}
    row.refresh_interval_seconds = seconds
    row.next_refresh_at = (row.last_refreshed_at or timezone.now()) + timedelta(seconds=seconds)
    row.save(update_fields=["refresh_interval_seconds", "next_refresh_at", "updated_at"])
    return _record(row, actor, before, {"refreshIntervalSeconds": seconds})


@lock_catalog()
def set_description(*, server: Server, description: str, actor: actors.Actor) -> Change | None:
    """What the server is for, in one line, as prompts say it. None where it is so already."""
    actors.require(actor, Role.EDITOR)
    description = " ".join(description.split())
    if len(description) > DESCRIPTION_CHARS or not is_storable(description):
        raise InvalidInput.at("description", f"must be one line of at most {DESCRIPTION_CHARS} characters")
    row = Server.objects.select_for_update().get(pk=server.pk)
    if row.description == description:
        return None
    before: dict[str, object] = {"description": row.description}
    row.description = description
    row.save(update_fields=["description", "updated_at"])
    decisions.request_new_lists()
    return _record(row, actor, before, {"description": description})


@lock_catalog()
def set_enabled(*, server: Server, enabled: bool, actor: actors.Actor) -> Change | None:
    """A disabled server's tools are in no list, no sum and no search; what was set on them stays. None where
    it is so already.
    """
    actors.require(actor, Role.EDITOR)
    row = Server.objects.select_for_update().get(pk=server.pk)
    if row.enabled == enabled:
        return None
    row.enabled = enabled
    row.save(update_fields=["enabled", "updated_at"])
    mark_facts_changed(row.tools.all())
    derived_state.request_all()
    return _record(row, actor, {"enabled": not enabled}, {"enabled": enabled})


@lock_catalog()
def set_keeps_no_state(*, server: Server, keeps_no_state: bool, actor: actors.Actor) -> Change | None:
    """Whether keys may share one connection of the gateway to the server: what one agent leaves behind there
    would reach the others, so that is for admins to say. None where it is so already.
    """
    actors.require(actor, Role.EDITOR)
    row = Server.objects.select_for_update().get(pk=server.pk)
    if row.keeps_no_state == keeps_no_state:
        return None
    actors.require(actor, Role.ADMIN)
    row.keeps_no_state = keeps_no_state
    row.save(update_fields=["keeps_no_state", "updated_at"])
    return _record(row, actor, {"keepsNoState": not keeps_no_state}, {"keepsNoState": keeps_no_state})


@lock_catalog()
def set_kind(*, server: Server, kind: Kind, actor: actors.Actor) -> Change | None:
    """Make the server of another kind. Its tools get the names of that kind, as if they were new under it.

    For agents the tools of the old names are gone: a session that had loaded one searches again. What
    admins set, approved and recorded stays with the tools, and saved queries expect the new names. Globs of
    policies and sessions that spell an old name out match no more; bare names and `server/tool` do.
    """
    actors.require(actor, Role.EDITOR)
    row = Server.objects.select_for_update().get(pk=server.pk)
    if row.kind == kind:
        return None
    before: dict[str, object] = {"kind": str(row.kind)}
    row.kind = kind
    row.save(update_fields=["kind", "updated_at"])
    decisions.request_all_anew()  # locks the lists, which comes before the tools
    saved_queries.rename_expected(rename_tools(row))
    derived_state.request_all()
    return _record(row, actor, before, {"kind": str(kind)})


@lock_catalog()
def delete_server(*, server: Server, actor: actors.Actor) -> Change:
    """The server, its tools and their history go, and with them its tools from every decided list.

    A worker decides anew where that takes a policy below its threshold.
    """
    actors.require(actor, Role.ADMIN)
    row = Server.objects.select_for_update().get(pk=server.pk)
    before = describe_server(row)
    _delete_row(row)
    return changes.record_change(
        actor=actor, subject=Subject.SERVER, name=row.name, action=Action.DELETED, before=before
    )


def replace_demo_server(name: str) -> None:
    """Delete the demo server of this name, if there is one, for a server of somebody's own.

    Call with the catalog locked, in the transaction that adds the other and records it.
    """
    row = Server.objects.select_for_update().filter(name=name, demo=True).first()
    if row is not None:
        _delete_row(row)


def _delete_row(row: Server) -> None:
    decisions.take_out_server(row)
    row.delete()
    CatalogVersion.advance()
    derived_state.request_all()


def version_of(server: Server) -> str:
    """The version of the server's settings, for the precondition of an edit."""
    return edits.encode_version(_edit_row(server).present)


def require_current_server(
    *,
    server: Server,
    if_unchanged: edits.Precondition | None,
    wanted: Mapping[str, object] | None = None,
) -> None:
    """Raises OutdatedEdit where the precondition does not hold. Call with the catalog locked.

    `wanted` are the settings that a form would write, by the names of `edited_settings`.
    """
    edits.require_current(_edit_row(server), if_unchanged, wanted=wanted)


def edited_settings(entry: ServerEntry) -> dict[str, object]:
    """The settings that versions of a server are made from, secret ones included."""
    return {
        "transport": str(entry.transport),
        "command": entry.command,
        "args": list(entry.args),
        "env": dict(entry.env),
        "cwd": entry.cwd,
        "url": entry.url,
        "headers": dict(entry.headers),
        "timeoutSeconds": entry.timeout_seconds,
        "secretArgs": list(entry.secret_args),
    }


def _edit_row(server: Server) -> edits.EditedRow:
    """Secret values count but are not shown. Where they cannot be decrypted, the encrypted text counts."""
    entry = try_read_entry(server)
    shown: dict[str, object] = {
        "kind": str(server.kind),
        "transport": str(server.transport),
        "command": server.command,
        "url": server.url,
        "description": server.description,
        "enabled": server.enabled,
        "deferLoading": server.defer_loading,
        "refreshIntervalSeconds": server.refresh_interval_seconds,
        "keepsNoState": server.keeps_no_state,
    }
    client = oauth_clients.describe_edited_client(server)
    shown |= {name: value for name, value in client.items() if name != "clientSecret"}
    secrets: dict[str, object] = {"secrets": str(server.sealed)}
    if entry is not None:
        secrets = edited_settings(entry)
        shown |= {"args": list(show_args(entry.args, entry.secret_args)), "cwd": entry.cwd}
        shown |= {"timeoutSeconds": entry.timeout_seconds, "secretArgs": list(entry.secret_args)}
    return edits.EditedRow(Subject.SERVER, server.name, present={**shown, **client, **secrets}, shown=shown)


def describe_server(server: Server) -> dict[str, object]:
    """The server's fields for the change record: names of secrets, never their values."""
    entry = try_read_entry(server)
    return {
        "transport": str(server.transport),
        "command": server.command,
        "args": list(show_args(entry.args, entry.secret_args)) if entry else [],
        "env": sorted(entry.env) if entry else [],
        "url": server.url,
        "headers": sorted(entry.headers) if entry else [],
        **_describe_rest(entry),
        "deferLoading": server.defer_loading,
        **describe_kind(server),
    }


def _describe_rest(entry: ServerEntry | None) -> dict[str, object]:
    """The folder and the timeout, where they are given."""
    given = {"cwd": entry.cwd, "timeoutSeconds": entry.timeout_seconds} if entry else {}
    return {name: value for name, value in given.items() if value}


def describe_kind(server: Server) -> dict[str, object]:
    """The unusual fields of a server: that it is disabled, keeps no state, or is not of kind `mcp`."""
    described: dict[str, object] = {} if server.kind == Kind.MCP else {"kind": str(server.kind)}
    if server.keeps_no_state:
        described["keepsNoState"] = True
    return described if server.enabled else {**described, "enabled": False}


def connection_of(entry: ServerEntry) -> Connection:
    """What a worker needs to reach the server, secrets included."""
    return Connection(
        transport=entry.transport,
        command=entry.command,
        args=entry.args,
        env=entry.env,
        url=entry.url,
        headers=entry.headers,
        cwd=entry.cwd,
        timeout_seconds=entry.timeout_seconds,
        secret_args=entry.secret_args,
    )


def _record(
    server: Server, actor: actors.Actor, before: Mapping[str, object], after: Mapping[str, object]
) -> Change:
    return changes.record_change(
        actor=actor, subject=Subject.SERVER, name=server.name, before=before, after=after
    )
