"""Loads tool definitions given as a file, as servers of the transport `snapshot`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.utils import timezone

from catalog import upstream
from catalog.access import Role
from catalog.domain.choices import Transport
from catalog.domain.connection import Rejected
from catalog.domain.definitions import ANY_OBJECT, Definition
from catalog.domain.errors import Conflict
from catalog.models import Server
from catalog.models.changes import Action, Subject
from catalog.services import changes, followers, tools
from catalog.services.writing import catalog_writing


@dataclass(frozen=True, slots=True)
class Imported:
    server: str
    stored: tools.Stored
    rejected: tuple[Rejected, ...]


@catalog_writing()
def import_snapshots(
    *, definitions_by_server: Mapping[str, Sequence[dict[str, Any]]], actor: changes.Actor
) -> list[Imported]:
    """All or nothing. A definition that is not valid is kept out and reported, alone.

    Raises Conflict when a server of that name is one we connect to.
    """
    changes.require(actor, Role.EDITOR)
    imported = [_import_one(name, definitions, actor) for name, definitions in definitions_by_server.items()]
    if any(one.stored.touched for one in imported):
        followers.request_all()
    return imported


def _import_one(name: str, definitions: Sequence[dict[str, Any]], actor: changes.Actor) -> Imported:
    server = _find_or_create(name, actor)
    valid, rejected = upstream.judge_definitions(map(_complete, definitions))
    without_schema = {one.get("name") for one in definitions if not one.get("inputSchema")}
    now = timezone.now()
    stored = tools.store_definitions(
        server=server, definitions=[_read(wire, without_schema) for wire in valid], now=now
    )
    Server.objects.filter(pk=server.pk).update(last_refreshed_at=now)
    return Imported(server=name, stored=stored, rejected=rejected)


def _read(wire: dict[str, Any], without_schema: set[object]) -> Definition:
    """What was left out counts nothing, though it is sent as the schema that allows everything."""
    definition = Definition.from_wire(wire)
    return replace(definition, input_schema={}) if definition.name in without_schema else definition


def _complete(definition: dict[str, Any]) -> dict[str, Any]:
    """A file may leave the schema out, where a server may not."""
    return definition if definition.get("inputSchema") else {**definition, "inputSchema": ANY_OBJECT}


def _find_or_create(name: str, actor: changes.Actor) -> Server:
    server, is_new = Server.objects.get_or_create(name=name, defaults={"transport": Transport.SNAPSHOT})
    if not server.is_snapshot:
        raise Conflict(f"{name} is a server we connect to, not a snapshot")
    if is_new:
        changes.record(
            actor=actor,
            subject=Subject.SERVER,
            name=name,
            action=Action.CREATED,
            after={"transport": server.transport},
        )
    return server
