"""Keeps costly work some time apart, so that a burst of changes is one piece of it."""

import time
from collections.abc import Callable
from threading import Lock


class Pace:
    """What is asked for while one rests is done together, when the rest is over."""

    def __init__(self, rest_seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rest_seconds = rest_seconds
        self._clock = clock
        self._rested_at = float("-inf")
        self._lock = Lock()

    def seconds_left(self) -> float:
        with self._lock:
            return max(0.0, self._rested_at - self._clock())

    def begin_rest(self) -> None:
        with self._lock:
            self._rested_at = self._clock() + self._rest_seconds
