"""Imports tool definitions from a file, as servers with transport `snapshot`."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.utils import timezone

from catalog import upstream
from catalog.access import actors
from catalog.access.roles import Role
from catalog.domain.choices import Kind, Transport
from catalog.domain.connection import Rejected
from catalog.domain.definitions import ANY_OBJECT, Definition
from catalog.domain.errors import Conflict
from catalog.models import Server
from catalog.models.changes import Action, Subject
from catalog.services import changes, demo, derived_state, servers, tools
from catalog.services.catalog_lock import lock_catalog

NAMED_TAKEN = 1_000  # of names that are taken, all that anybody would look at


@dataclass(frozen=True, slots=True)
class Imported:
    server: str
    stored: tools.Stored
    rejected: tuple[Rejected, ...]


@dataclass(frozen=True, slots=True)
class PreparedSnapshot:
    server: str
    listing: tools.PreparedListing
    rejected: tuple[Rejected, ...]


def import_snapshots(
    *,
    definitions_by_server: Mapping[str, Sequence[dict[str, Any]]],
    actor: actors.Actor,
    kind: Kind | None = None,
) -> list[Imported]:
    """Prepare snapshots and store them: all or nothing.

    With `kind` None servers that are there stay what they are, and new ones are `mcp`. Raises Conflict when a
    server of that name is one we connect to.
    """
    prepared = prepare_snapshots(definitions_by_server=definitions_by_server, actor=actor, kind=kind)
    return store_snapshots(prepared=prepared, actor=actor, kind=kind)


def prepare_snapshots(
    *,
    definitions_by_server: Mapping[str, Sequence[dict[str, Any]]],
    actor: actors.Actor,
    kind: Kind | None = None,
) -> list[PreparedSnapshot]:
    """The slow part: call it outside of a transaction. Stores nothing.

    An invalid definition is rejected and reported, alone. Raises InvalidInput for a name that a new server
    cannot have, and Conflict with every name that is taken by a server we connect to.
    """
    actors.require(actor, Role.EDITOR)
    servers.refuse_names(dict.fromkeys(definitions_by_server, "name"))
    _refuse_taken(definitions_by_server)
    return [_prepare(name, definitions, kind) for name, definitions in definitions_by_server.items()]


@lock_catalog()
def store_snapshots(
    *, prepared: Sequence[PreparedSnapshot], actor: actors.Actor, kind: Kind | None = None
) -> list[Imported]:
    """Store prepared snapshots under the kind they were prepared with. Raises as `import_snapshots` does."""
    actors.require(actor, Role.EDITOR)
    _refuse_taken([one.server for one in prepared])
    imported = [_store_one(one, actor, kind) for one in prepared]
    if any(one.stored.touched for one in imported):
        derived_state.request_all()
    demo.give_way(added=sum(len(one.stored.added) for one in imported))
    return imported


def _refuse_taken(names: Collection[str]) -> None:
    connected = Server.objects.filter(name__in=list(names)).exclude(transport=Transport.SNAPSHOT)
    taken = list(connected.order_by("name").values_list("name", flat=True))
    if not taken:
        return
    if len(taken) == 1:
        raise Conflict(f"{taken[0]} is a server we connect to, not a snapshot")
    more = f" and {len(taken) - NAMED_TAKEN:,} more" if len(taken) > NAMED_TAKEN else ""
    told = f"{', '.join(taken[:NAMED_TAKEN])}{more}"
    raise Conflict(f"{len(taken):,} of these are servers we connect to, not snapshots: {told}")


def _prepare(name: str, definitions: Sequence[dict[str, Any]], kind: Kind | None) -> PreparedSnapshot:
    """The server itself is created or found when the snapshot is stored."""
    valid, rejected = upstream.judge_definitions(map(_complete, definitions))
    without_schema = {one.get("name") for one in definitions if not one.get("inputSchema")}
    server = Server.objects.filter(name=name).first() or Server(name=name, transport=Transport.SNAPSHOT)
    server.kind = kind or server.kind
    read = [_read(wire, without_schema) for wire in valid]
    return PreparedSnapshot(name, tools.prepare_listing(server=server, definitions=read), rejected)


def _store_one(prepared: PreparedSnapshot, actor: actors.Actor, kind: Kind | None) -> Imported:
    server = _find_or_create(prepared.server, actor, kind or Kind.MCP)
    if kind:
        servers.set_kind(server=server, kind=kind, actor=actor)
    now = timezone.now()
    stored = tools.store_listing(server=server, listing=prepared.listing, now=now)
    Server.objects.filter(pk=server.pk).update(last_refreshed_at=now)
    return Imported(server=prepared.server, stored=stored, rejected=prepared.rejected)


def _read(wire: dict[str, Any], without_schema: set[object]) -> Definition:
    """A missing schema counts no characters, though it is sent as the schema that allows everything."""
    definition = Definition.from_wire(wire)
    return replace(definition, input_schema={}) if definition.name in without_schema else definition


def _complete(definition: dict[str, Any]) -> dict[str, Any]:
    """Adds the schema, which a file may leave out and a server may not."""
    return definition if definition.get("inputSchema") else {**definition, "inputSchema": ANY_OBJECT}


def _find_or_create(name: str, actor: actors.Actor, kind: Kind) -> Server:
    servers.replace_demo_server(name)
    server, is_new = Server.objects.get_or_create(
        name=name, defaults={"transport": Transport.SNAPSHOT, "kind": kind}
    )
    if is_new:
        changes.record_change(
            actor=actor,
            subject=Subject.SERVER,
            name=name,
            action=Action.CREATED,
            after={"transport": server.transport, **servers.describe_kind(server)},
        )
    return server
