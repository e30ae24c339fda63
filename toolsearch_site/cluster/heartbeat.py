"""Writes this node's heartbeat row, by which the other nodes see that it is alive."""

import logging
import os
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import cache
from importlib import metadata
from threading import Event, Thread

from django.conf import settings
from django.db import DatabaseError, connection
from django.utils import timezone

from catalog.services import reindex
from toolsearch_site.models import Node

WRITE_EVERY_SECONDS = 5.0
IS_LATE_AFTER = timedelta(seconds=20)
DELETED_AFTER = timedelta(days=1)

logger = logging.getLogger(__name__)


@cache
def product_version() -> str:
    return metadata.version("toolsearch")


def write(*, roles: Sequence[str], started_at: datetime) -> None:
    """Write this node's row, and delete rows of nodes that have been silent for a day."""
    now = timezone.now()
    lag = reindex.read_index_lag()
    row = {
        "roles": ", ".join(roles),
        "version": product_version(),
        "pid": os.getpid(),
        "index_version": lag and lag.version,
        "index_behind": lag and lag.behind,
        "started_at": started_at,
        "seen_at": now,
    }
    Node.objects.update_or_create(name=_name(roles), defaults=row)
    Node.objects.filter(seen_at__lt=now - DELETED_AFTER).delete()


def remove(roles: Sequence[str]) -> None:
    Node.objects.filter(name=_name(roles)).delete()


def _name(roles: Sequence[str]) -> str:
    return f"{settings.NODE}/{'+'.join(roles)}"


def run(stopping: Event, roles: Sequence[str]) -> None:
    """Write the heartbeat from a thread of its own, and remove the row when the node begins to stop."""
    Thread(target=_write_until_stopped, args=(stopping, roles), name="heartbeat", daemon=True).start()


def _write_until_stopped(stopping: Event, roles: Sequence[str]) -> None:
    started_at = timezone.now()
    while not stopping.is_set():
        _log_failure(lambda: write(roles=roles, started_at=started_at))
        stopping.wait(WRITE_EVERY_SECONDS)
    _log_failure(lambda: remove(roles))


def _log_failure(step: Callable[[], None]) -> None:
    try:
        step()
    except DatabaseError as error:
        logger.warning("the heartbeat cannot be written: %s", error)
    finally:
        connection.close()
