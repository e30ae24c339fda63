"""Calls of servers over leases: who calls what, what is kept open, and the ways in which a call fails."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar, Literal

from catalog.domain.connection import Connection, FailureCode, Limits, Rules, UpstreamFailure
from catalog.domain.errors import ToolSearchError

Era = Literal["legacy", "auto"]
OnRefused = Callable[[int, str], None]


@dataclass(frozen=True, slots=True)
class Upstream:
    """A server to connect to, read anew for each call."""

    server_id: int
    name: str
    connection: Connection  # not resolved yet
    credential: str  # digest of the connection's settings: another one is another lease
    limits: Limits
    rules: Rules
    keeps_no_state: bool = False
    token: str = field(default="", repr=False)  # of a sign-in to the server
    needs_token: bool = False  # the token has to be renewed first, or there is none to be had


@dataclass(frozen=True, slots=True)
class LeaseHolder:
    """For whom a lease is opened. `answers` is what the client can answer, such as `elicitation`.

    The era `legacy` is that of clients up to revision 2025-11-25.
    """

    key_id: int
    era: Era = "auto"
    answers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """How many leases may be open at once, and for how long without a call.

    Past `per_key`, `per_server` and `total` the longest unused lease makes room. `commands` limits the leases
    that run a process here. The last three are how much one server may send unasked.
    """

    idle_seconds: float = 300.0
    per_key: int = 50
    per_server: int = 100
    total: int = 500
    commands: int = 60
    bytes_per_second: float = 8 * 1024 * 1024
    requests_per_call: int = 100
    progress_per_second: float = 20.0


@dataclass(frozen=True, slots=True)
class LeaseState:
    """An open lease, for display. `key_id` is unset where keys share it.

    `pid` is the process that runs the server's command and ends with it.
    """

    id: str
    key_id: int | None
    server_id: int
    opened_at: datetime
    last_used_at: datetime
    open_calls: int
    protocol_version: str
    pid: int | None = None


class BreakerPosition(StrEnum):
    """Whether calls pass. Half open: one call at a time, to see whether the server works again."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


@dataclass(frozen=True, slots=True)
class BreakerState:
    """What a server's breaker does, for display."""

    server_id: int
    position: BreakerPosition
    failures: int
    open_until: datetime | None
    last_failure: str


class UpstreamError(ToolSearchError):
    """A server answered a request with a JSON-RPC error."""

    status: ClassVar[int] = 502
    title: ClassVar[str] = "The server refused the request"

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class CallTimedOut(ToolSearchError):
    """A server did not answer in time. It was told that nobody waits any more."""

    status: ClassVar[int] = 504
    title: ClassVar[str] = "The server did not answer in time"

    def __init__(self, seconds: float) -> None:
        super().__init__(f"The server did not answer within {seconds:g} s")
        self.seconds = seconds


class UpstreamBusy(UpstreamFailure):
    """As many leases are in use as may be. Nothing was sent."""

    def __init__(self, message: str, *, retry_after_seconds: float) -> None:
        super().__init__(FailureCode.BUSY, message)
        self.retry_after_seconds = retry_after_seconds


class UpstreamSuspended(UpstreamFailure):
    """The server failed several times in a row, and is left alone for a while. Nothing was sent."""

    def __init__(self, until: datetime, *, retry_after_seconds: float, last_failure: str) -> None:
        super().__init__(
            FailureCode.SUSPENDED,
            f"The server failed several times in a row and is not called before {until:%H:%M:%S} UTC. "
            f"The last failure: {last_failure}",
        )
        self.until = until
        self.retry_after_seconds = retry_after_seconds
