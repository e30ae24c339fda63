"""Loads the demo catalog into a new instance."""

import json
import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils import timezone

from catalog.access import actors
from catalog.domain.choices import Kind, Transport
from catalog.domain.connection import Connection
from catalog.domain.definitions import Definition
from catalog.domain.policy import DEFAULT_SLUG
from catalog.models import Change, ModelSupport, Policy, Server
from catalog.models.changes import Action, Subject
from catalog.services import changes, connections, derived_state, model_support, saved_queries, tools
from catalog.services.catalog_lock import lock_catalog

DEMO_FOLDER = Path(__file__).resolve().parent.parent / "demo"


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
        next_refresh_at=timezone.now(),
    )
    connections.write_connection(server, connection)
    server.save(update_fields=["sealed"])
    _record_creation(server)


def _save_queries() -> None:
    policy = Policy.objects.get(slug=DEFAULT_SLUG)
    for saved in json.loads((DEMO_FOLDER / "saved_queries.json").read_text(encoding="utf-8")):
        saved_queries.save_query(
            policy=policy, query=saved["query"], expected=saved["expected"], actor=actors.SYSTEM
        )


def _record_creation(server: Server) -> None:
    changes.record_change(
        actor=actors.SYSTEM,
        subject=Subject.SERVER,
        name=server.name,
        action=Action.CREATED,
        after={"transport": server.transport, "deferLoading": server.defer_loading},
    )
