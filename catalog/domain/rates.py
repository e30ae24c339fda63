"""Rate limits: requests per minute, and the seconds to wait past the limit."""

import math
import time
from collections.abc import Callable
from threading import Lock
from typing import ClassVar

from catalog.domain.errors import ToolSearchError

WINDOW_SECONDS = 60


class TooManyRequests(ToolSearchError):
    status: ClassVar[int] = 429
    title: ClassVar[str] = "Too many requests"

    def __init__(self, retry_after_seconds: int) -> None:
        super().__init__(f"this key's limit is used up; try again in {retry_after_seconds} s")
        self.retry_after_seconds = retry_after_seconds


class Window:
    """Counts requests per key in the current minute, in this process."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = Lock()
        self._minute = -1
        self._counts: dict[int, int] = {}

    def count(self, key_id: int) -> int:
        """Add one request of a key and return its count in this minute."""
        minute = int(self._clock() // WINDOW_SECONDS)
        with self._lock:
            if minute != self._minute:
                self._minute, self._counts = minute, {}
            self._counts[key_id] = self._counts.get(key_id, 0) + 1
            return self._counts[key_id]

    def clear(self) -> None:
        with self._lock:
            self._counts = {}


def seconds_left(now: float) -> int:
    """Seconds until the next minute begins."""
    return math.ceil(WINDOW_SECONDS - now % WINDOW_SECONDS)
