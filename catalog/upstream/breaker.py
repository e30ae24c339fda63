"""Leaves a server alone after several failures in a row, then tries it with one call at a time."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from catalog.domain.connection import UpstreamFailure
from catalog.domain.upstream_calls import BreakerPosition, BreakerState, UpstreamSuspended

FAILURES_TO_OPEN = 5
FIRST_PAUSE_SECONDS = 10.0
LONGEST_PAUSE_SECONDS = 300.0
TRIAL_SECONDS = 1.0  # when to come back while somebody else tries
LONGEST_REASON = 300


class Breaker:
    """The breaker of one server with one credential. It counts only what the caller calls a failure."""

    def __init__(
        self, server_id: int, credential: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.credential = credential
        self._server_id = server_id
        self._clock = clock
        self._failures = 0
        self._last_failure = ""
        self._pause_seconds = 0.0  # 0 while closed
        self._open_until = 0.0
        self._is_trying = False

    def admit(self) -> bool:
        """Whether this call is the one that tries; it has to `end_trial`. Raises UpstreamSuspended."""
        position = self.position
        if position is BreakerPosition.CLOSED:
            return False
        if position is BreakerPosition.OPEN or self._is_trying:
            raise self._suspended()
        self._is_trying = True
        return True

    def end_trial(self) -> None:
        """The try is over, whatever came of it."""
        self._is_trying = False

    def succeed(self) -> None:
        """The server answered: calls pass again."""
        self._failures = 0
        self._pause_seconds = 0.0

    def fail(self, failure: UpstreamFailure) -> None:
        """The server could not be reached, or the connection broke."""
        self._failures += 1
        self._last_failure = failure.message[:LONGEST_REASON]
        if self.position is BreakerPosition.OPEN or self._failures < FAILURES_TO_OPEN:
            return
        self._pause_seconds = min(LONGEST_PAUSE_SECONDS, self._pause_seconds * 2 or FIRST_PAUSE_SECONDS)
        self._open_until = self._clock() + self._pause_seconds

    @property
    def position(self) -> BreakerPosition:
        if not self._pause_seconds:
            return BreakerPosition.CLOSED
        is_open = self._clock() < self._open_until
        return BreakerPosition.OPEN if is_open else BreakerPosition.HALF_OPEN

    def state(self) -> BreakerState:
        position = self.position
        until = self._until() if position is BreakerPosition.OPEN else None
        return BreakerState(self._server_id, position, self._failures, until, self._last_failure)

    def _left_seconds(self) -> float:
        return max(self._open_until - self._clock(), 0.0)

    def _until(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self._left_seconds())

    def _suspended(self) -> UpstreamSuspended:
        left = self._left_seconds() or TRIAL_SECONDS
        until = datetime.now(UTC) + timedelta(seconds=left)
        return UpstreamSuspended(until, retry_after_seconds=left, last_failure=self._last_failure)


class Breakers:
    """The breakers of all servers. A server with a changed credential starts anew."""

    def __init__(self) -> None:
        self._breakers: dict[int, Breaker] = {}

    @contextmanager
    def passed(self, server_id: int, credential: str) -> Iterator[None]:
        """Around a call. Raises UpstreamSuspended while the server is left alone."""
        breaker = self._breaker_of(server_id, credential)
        is_trial = breaker.admit()
        try:
            yield
        finally:
            if is_trial:
                breaker.end_trial()

    def note_success(self, server_id: int, credential: str) -> None:
        self._breaker_of(server_id, credential).succeed()

    def note_failure(self, server_id: int, credential: str, failure: UpstreamFailure) -> None:
        self._breaker_of(server_id, credential).fail(failure)

    def states(self) -> list[BreakerState]:
        """Those of servers that failed and have not answered since."""
        states = (breaker.state() for breaker in self._breakers.values())
        return [state for state in states if state.failures]

    def _breaker_of(self, server_id: int, credential: str) -> Breaker:
        breaker = self._breakers.get(server_id)
        if breaker is None or breaker.credential != credential:
            breaker = self._breakers[server_id] = Breaker(server_id, credential)
        return breaker
