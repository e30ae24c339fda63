"""Celery's scheduler under a lease: one runs, the others wait and take over when it is gone."""

import logging
import os
import time
import uuid
from datetime import timedelta
from typing import Any

from celery.beat import Scheduler
from django.conf import settings
from django.db import DatabaseError, connection

from toolsearch_site.cluster import leases

LENGTH = timedelta(seconds=6)
RENEW_EVERY_SECONDS = 2.0
CLOCK_BACK_SECONDS = 2.0

logger = logging.getLogger(__name__)


class SoleScheduler(Scheduler):  # type: ignore[misc]  # Celery has no types
    """Sends due tasks only while it holds the lease. What is due is stored in rows, so a takeover only delays
    it by seconds.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.holder = f"{settings.NODE}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self.is_holding = False
        self._clocks = self._read_clocks()

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Seconds until the next tick, short enough to renew the lease in time."""
        self._notice_clock()
        self._tell_change(self._try_to_hold())
        if not self.is_holding:
            return RENEW_EVERY_SECONDS
        pause: float = super().tick(*args, **kwargs)
        return min(pause, RENEW_EVERY_SECONDS)

    def close(self) -> None:
        if self.is_holding:
            try:
                leases.release(leases.SCHEDULER_LEASE, holder=self.holder)
            except DatabaseError as error:
                logger.warning("the lease could not be given back, it ends by itself: %s", error)
        super().close()

    def _read_clocks(self) -> tuple[float, float]:
        """The wall clock, by which Celery says what is due, and one that is never set."""
        return self.app.now().timestamp(), time.monotonic()

    def _notice_clock(self) -> None:
        """Where the wall clock was set back, nothing would be due until it is where it was: all intervals
        begin anew.
        """
        (wall, steady), self._clocks = self._clocks, self._read_clocks()
        back_seconds = (self._clocks[1] - steady) - (self._clocks[0] - wall)
        if back_seconds < CLOCK_BACK_SECONDS:
            return
        logger.warning("the clock was set back by %d seconds: every interval begins anew", back_seconds)
        for entry in self.schedule.values():
            entry.last_run_at = entry.default_now()
        self._heap = None

    def _try_to_hold(self) -> bool:
        try:
            return leases.acquire(leases.SCHEDULER_LEASE, holder=self.holder, length=LENGTH)
        except DatabaseError as error:
            logger.warning("the lease could not be renewed: %s", error)
            return False
        finally:
            connection.close()

    def _tell_change(self, holds: bool) -> None:
        if holds != self.is_holding:
            logger.info("this scheduler is %s", "in charge" if holds else "standing by")
        self.is_holding = holds
