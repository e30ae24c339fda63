"""Loads tool definitions given as a file, as servers of the transport `snapshot`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils import timezone

from catalog import upstream
from catalog.domain.choices import Transport
from catalog.domain.connection import Rejected
from catalog.domain.definitions import Definition
from catalog.domain.errors import Conflict
from catalog.models import Server
from catalog.models.changes import Action, Subject
from catalog.services import changes, followers, tools


@dataclass(frozen=True, slots=True)
class Imported:
    server: str
    stored: tools.Stored
    rejected: tuple[Rejected, ...]


@transaction.atomic
def import_snapshots(
    *, definitions_by_server: Mapping[str, Sequence[dict[str, Any]]], actor: changes.Actor
) -> list[Imported]:
    """All or nothing. A definition that is not valid is kept out and reported, alone.

    Raises Conflict when a server of that name is one we connect to.
    """
    imported = [_import_one(name, definitions, actor) for name, definitions in definitions_by_server.items()]
    if any(one.stored.touched for one in imported):
        followers.request_all()
    return imported


def _import_one(name: str, definitions: Sequence[dict[str, Any]], actor: changes.Actor) -> Imported:
    server = _find_or_create(name, actor)
    valid, rejected = upstream.judge_definitions(
        {"inputSchema": {"type": "object"}, **one} for one in definitions
    )
    now = timezone.now()
    stored = tools.store_definitions(
        server=server, definitions=[Definition.from_wire(wire) for wire in valid], now=now
    )
    Server.objects.filter(pk=server.pk).update(last_refreshed_at=now)
    return Imported(server=name, stored=stored, rejected=rejected)


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
