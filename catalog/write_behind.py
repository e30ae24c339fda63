"""A write-behind buffer: requests enqueue what can wait, and a moment later one thread writes it together."""

import atexit
import logging
from abc import ABC, abstractmethod
from threading import Lock, Timer
from typing import Generic, TypeVar

from django.conf import settings
from django.db import DatabaseError, InterfaceError, OperationalError, connection

Batch = TypeVar("Batch")

logger = logging.getLogger(__name__)


class WriteBehindBuffer(ABC, Generic[Batch]):
    """Rows that one process has enqueued and not written yet. `what` names them in the log.

    A subclass adds to `_batch` and calls `_start_timer`, both while it holds `_lock`.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._lock = Lock()
        self._batch = self._make_batch()
        self._timer: Timer | None = None
        atexit.register(self._flush_and_close)

    @abstractmethod
    def _make_batch(self) -> Batch:
        """An empty one, which is false."""

    @abstractmethod
    def _write(self, batch: Batch) -> None:
        """Write all of it, or raise and write nothing."""

    @abstractmethod
    def _merge(self, unwritten: Batch, later: Batch) -> Batch:
        """A batch that could not be written, and what was enqueued since."""

    def flush(self) -> None:
        """Write what is enqueued. While the database is away it stays enqueued, and the error is raised."""
        with self._lock:
            batch, self._batch, self._timer = self._batch, self._make_batch(), None
        if not batch:
            return
        try:
            self._write(batch)
        except (OperationalError, InterfaceError):
            with self._lock:
                self._batch = self._merge(batch, self._batch)
                self._start_timer()
            raise

    def clear(self) -> None:
        """Forget what has not been written yet."""
        with self._lock:
            self._batch = self._make_batch()

    def _start_timer(self) -> None:
        if self._timer is None and settings.WRITE_BEHIND_SECONDS:
            self._timer = Timer(settings.WRITE_BEHIND_SECONDS, self._flush_and_close)
            self._timer.daemon = True
            self._timer.start()

    def _flush_and_close(self) -> None:
        """On a thread of its own, with a connection of its own; and when the process ends."""
        if not settings.WRITE_BEHIND_SECONDS:
            return
        try:
            self.flush()
        except DatabaseError:
            logger.exception("%s could not be recorded now", self._what)
        finally:
            connection.close()
