"""Celery's scheduler, one at a time: a second one waits, and takes over when the first is gone."""

import logging
import os
import uuid
from datetime import timedelta
from typing import Any

from celery.beat import Scheduler
from django.conf import settings
from django.db import DatabaseError, connection

from toolsearch_site import leases

LENGTH = timedelta(seconds=6)
RENEW_EVERY_SECONDS = 2.0

logger = logging.getLogger(__name__)


class SoleScheduler(Scheduler):  # type: ignore[misc]  # Celery has no types
    """Sends what is due only while it holds the lease. What is due stands in the rows, so a gap of a few
    seconds at a change costs a few seconds.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.holder = f"{settings.NODE}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self.is_holding = False

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Seconds until the next tick; never so many that the lease would end meanwhile."""
        self._tell_change(self._try_to_hold())
        if not self.is_holding:
            return RENEW_EVERY_SECONDS
        pause: float = super().tick(*args, **kwargs)
        return min(pause, RENEW_EVERY_SECONDS)

    def close(self) -> None:
        if self.is_holding:
            try:
                leases.let_go(leases.SCHEDULER, holder=self.holder)
            except DatabaseError as error:
                logger.warning("the lease could not be given back, it ends by itself: %s", error)
        super().close()

    def _try_to_hold(self) -> bool:
        try:
            return leases.hold(leases.SCHEDULER, holder=self.holder, length=LENGTH)
        except DatabaseError as error:
            logger.warning("the lease could not be renewed: %s", error)
            return False
        finally:
            connection.close()

    def _tell_change(self, holds: bool) -> None:
        if holds != self.is_holding:
            logger.info("this scheduler is %s", "in charge" if holds else "standing by")
        self.is_holding = holds
