"""Keeps this node's own search index up to date by polling the catalog's version.

One row holds the catalog's version, and one the number of an encoder's vectors, so checking is cheap. An
update costs about the same for one tool as for fifty: changes that follow each other soon are handled
together.
"""

import logging
import time
from threading import Event

from django.conf import settings
from django.db import DatabaseError, connection

from catalog.domain.errors import Unavailable
from catalog.models import CatalogVersion
from catalog.search import generations
from catalog.selectors.encoder import read_vectors_number
from catalog.services import reindex

LOOK_EVERY_SECONDS = 0.1
# From the start of one update to the start of the next: on a busy machine, where an update takes long, the
# pause is short, so that a change is still found within the two seconds promised.
CATCH_UP_EVERY_SECONDS = 0.6
PAUSE_AFTER_TROUBLE_SECONDS = 2.0
NO_INDEX = (0, 0)

logger = logging.getLogger(__name__)


class Follower:
    """Remembers the versions of the catalog and of its vectors that the index has reached."""

    def __init__(self) -> None:
        self._reached: tuple[int, int] | None = None

    def catch_up(self) -> bool:
        """Update the index where the catalog changed or the index is gone. False when there was nothing to
        do.
        """
        # Read before the tools are: what is committed meanwhile is then read twice, and never missed.
        version = CatalogVersion.current(), read_vectors_number()
        is_there = generations.current_stamp(settings.INDEX_FOLDER) != NO_INDEX
        if version == self._reached and is_there:
            return False
        reindex.bring_up_to_date()
        self._reached = version
        return True


def follow(stop: Event, *, every_seconds: float = LOOK_EVERY_SECONDS) -> None:
    """Run until stopped. While the database or the index cannot be used, retry after a pause."""
    follower = Follower()
    pause = every_seconds
    while not stop.wait(pause):
        try:
            started = time.monotonic()
            rest = CATCH_UP_EVERY_SECONDS if follower.catch_up() else 0.0
            pause = max(every_seconds, rest - (time.monotonic() - started))
        except (DatabaseError, Unavailable, OSError) as error:
            logger.warning("the search index cannot follow the catalog now: %s", error)
            pause = PAUSE_AFTER_TROUBLE_SECONDS
        finally:
            connection.close_if_unusable_or_obsolete()
