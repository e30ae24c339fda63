"""The demo catalog: loaded into a new instance, disabled for the first tools of one's own, and removed."""

import json
import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils import timezone

from catalog.access import actors
from catalog.access.roles import Role
from catalog.domain.choices import Kind, Transport
from catalog.domain.connection import Connection
from catalog.domain.definitions import Definition
from catalog.domain.policy import DEFAULT_SLUG
from catalog.models import CatalogVersion, Change, ModelSupport, Policy, SavedQuery, Server, Tool
from catalog.models.changes import Action, Subject
from catalog.services import (
    changes,
    connections,
    decisions,
    derived_state,
    model_support,
    saved_queries,
    tools,
)
from catalog.services.catalog_lock import lock_catalog

DEMO_FOLDER = Path(__file__).resolve().parent.parent / "demo"
ENABLED = "enabled"
YES, NO = "yes", "no"


@dataclass(frozen=True, slots=True)
class Removed:
    servers: int
    tools: int
    queries: int

    def __str__(self) -> str:
        counts = ((self.servers, "server"), (self.tools, "tool"), (self.queries, "saved query"))
        return ", ".join(_count(number, noun) for number, noun in counts)


def load_demo() -> bool:
    """Load the demo if the instance has never had a server. False when there was nothing to do."""
    if Server.objects.exists() or Change.objects.filter(subject=Subject.SERVER).exists():
        return False
    with lock_catalog():
        _set_example_prices()
        for path in sorted((DEMO_FOLDER / "servers").glob("*.json")):
            _load_snapshot(json.loads(path.read_text(encoding="utf-8")))
        if settings.STDIO_ENABLED:
            _add_workshop()
        _save_queries()
        derived_state.request_all()
    return True


def give_way(*, added: int) -> Change | None:
    """Disable the demo once: when the first tools of a server of one's own were stored, `added` of them.

    Call with the catalog locked, after they are stored. A demo that was enabled again afterwards stays.
    """
    if not added or not Server.objects.filter(demo=True, enabled=True).exists():
        return None
    if Tool.objects.filter(server__demo=False).count() > added:
        return None
    return set_demo_enabled(enabled=False, actor=actors.SYSTEM)


@lock_catalog()
def set_demo_enabled(
    *, enabled: bool, actor: actors.Actor, names: Collection[str] | None = None
) -> Change | None:
    """Enable or disable the demo's servers, or those of these names, in one change. None where it is so."""
    actors.require(actor, Role.EDITOR)
    rows = Server.objects.select_for_update().filter(demo=True, enabled=not enabled).order_by("name")
    touched = {row.name: row.pk for row in rows if names is None or row.name in names}
    if not touched:
        return None
    Server.objects.filter(pk__in=touched.values()).update(enabled=enabled, updated_at=timezone.now())
    tools.mark_facts_changed(Tool.objects.filter(server__in=touched.values()))
    derived_state.request_all()
    before, after = (NO, YES) if enabled else (YES, NO)
    return changes.record_change(
        actor=actor,
        subject=Subject.SERVER,
        name=_count(len(touched), "demo server"),
        before={ENABLED: {before: list(touched)}},
        after={ENABLED: {after: list(touched)}},
    )


def is_of_demo(change: Change) -> bool:
    """Whether a change enabled or disabled servers of the demo together."""
    is_edit = change.subject == Subject.SERVER and change.action == Action.CHANGED
    return is_edit and isinstance(change.before.get(ENABLED), dict)


def restore_demo(*, change: Change, actor: actors.Actor) -> Change | None:
    """Undo such a change on the servers that are still as it left them. None where none is."""
    [(value, names)] = change.before[ENABLED].items()
    return set_demo_enabled(enabled=value == YES, actor=actor, names=names)


@lock_catalog()
def remove_demo(*, actor: actors.Actor) -> Removed | None:
    """Delete the demo's servers, their tools and its saved queries, for good. None where there is no demo."""
    actors.require(actor, Role.ADMIN)
    servers = list(Server.objects.select_for_update().filter(demo=True).order_by("name"))
    queries = SavedQuery.objects.filter(demo=True)
    listed = Tool.objects.filter(server__demo=True, gone_at=None)
    removed = Removed(len(servers), listed.count(), queries.count())
    if not removed.servers and not removed.queries:
        return None
    for server in servers:
        decisions.take_out_server(server)
    Server.objects.filter(pk__in=[server.pk for server in servers]).delete()
    queries.delete()
    CatalogVersion.advance()
    derived_state.request_all()
    changes.record_change(
        actor=actor,
        subject=Subject.SERVER,
        name=_count(removed.servers, "demo server"),
        action=Action.DELETED,
        before={
            "servers": [server.name for server in servers],
            "tools": removed.tools,
            "saved queries": removed.queries,
        },
    )
    return removed


def _set_example_prices() -> None:
    """Prices that show what money is about, for models that have none; marked as examples."""
    prices = json.loads((DEMO_FOLDER / "model_prices.json").read_text(encoding="utf-8"))
    rows = ModelSupport.objects.filter(name_pattern__in=prices, input_price=None)
    for row in rows:
        model_support.change_model(
            model_id=row.pk,
            changed={**prices[row.name_pattern], "prices_are_examples": True},
            actor=actors.SYSTEM,
        )


def _load_snapshot(document: dict[str, Any]) -> None:
    about = document["server"]
    now = timezone.now()
    server = Server.objects.create(
        name=about["name"],
        kind=Kind(about["kind"]),
        transport=Transport.SNAPSHOT,
        title=about["title"],
        description=about["description"],
        instructions=about["instructions"],
        defer_loading=about["deferLoading"],
        demo=True,
        last_refreshed_at=now,
    )
    definitions = [Definition.from_wire(wire) for wire in document["tools"]]
    tools.store_definitions(server=server, definitions=definitions, now=now)
    _record_creation(server)


def _add_workshop() -> None:
    """The demo's one real server, which the worker starts and refreshes."""
    connection = Connection(
        transport=Transport.STDIO, command=sys.executable, args=(str(DEMO_FOLDER / "workshop_server.py"),)
    )
    server = Server.objects.create(
        name="workshop",
        transport=connection.transport,
        command=connection.command,
        description="Converts units, dates, text and JSON; runs beside the worker.",
        demo=True,
        next_refresh_at=timezone.now(),
    )
    connections.write_connection(server, connection)
    server.save(update_fields=["sealed"])
    _record_creation(server)


def _save_queries() -> None:
    policy = Policy.objects.get(slug=DEFAULT_SLUG)
    for saved in json.loads((DEMO_FOLDER / "saved_queries.json").read_text(encoding="utf-8")):
        saved_queries.save_query(
            policy=policy,
            query=saved["query"],
            expected=saved["expected"],
            actor=actors.SYSTEM,
            demo=True,
        )


def _record_creation(server: Server) -> None:
    changes.record_change(
        actor=actors.SYSTEM,
        subject=Subject.SERVER,
        name=server.name,
        action=Action.CREATED,
        after={"transport": server.transport, "deferLoading": server.defer_loading, "demo": True},
    )


def _count(number: int, noun: str) -> str:
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun[:-1]}ies" if noun.endswith("y") else f"{number:,} {noun}s"
