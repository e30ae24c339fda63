"""Tells the other nodes that this one is there."""

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

TELL_EVERY_SECONDS = 5.0
IS_LATE_AFTER = timedelta(seconds=20)
FORGOTTEN_AFTER = timedelta(days=1)

logger = logging.getLogger(__name__)


@cache
def product_version() -> str:
    return metadata.version("toolsearch")


def tell(*, roles: Sequence[str], started_at: datetime) -> None:
    """Write this node's row, and forget nodes that have been gone for a day."""
    now = timezone.now()
    standing = reindex.read_standing()
    row = {
        "roles": ", ".join(roles),
        "version": product_version(),
        "pid": os.getpid(),
        "index_version": standing and standing.version,
        "index_behind": standing and standing.behind,
        "started_at": started_at,
        "seen_at": now,
    }
    Node.objects.update_or_create(name=_name(roles), defaults=row)
    Node.objects.filter(seen_at__lt=now - FORGOTTEN_AFTER).delete()


def leave(roles: Sequence[str]) -> None:
    Node.objects.filter(name=_name(roles)).delete()


def _name(roles: Sequence[str]) -> str:
    return f"{settings.NODE}/{'+'.join(roles)}"


def tell_until(stopping: Event, roles: Sequence[str]) -> None:
    """Tell of this node from a thread of its own, and take leave when the node begins to stop."""
    Thread(target=_keep_telling, args=(stopping, roles), name="tell", daemon=True).start()


def _keep_telling(stopping: Event, roles: Sequence[str]) -> None:
    started_at = timezone.now()
    while not stopping.is_set():
        _try_to(lambda: tell(roles=roles, started_at=started_at))
        stopping.wait(TELL_EVERY_SECONDS)
    _try_to(lambda: leave(roles))


def _try_to(step: Callable[[], None]) -> None:
    try:
        step()
    except DatabaseError as error:
        logger.warning("the other nodes cannot be told of this one: %s", error)
    finally:
        connection.close()
