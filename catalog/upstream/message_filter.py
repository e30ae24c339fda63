"""What stands between a server's messages and the SDK's session, which would start a task for each."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import Context
from itertools import count
from types import TracebackType
from typing import Any, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification, JSONRPCRequest

from catalog.domain.connection import FailureCode, UpstreamFailure
from catalog.upstream.progress import ProgressRelay, read_progress

Streams = AbstractAsyncContextManager[tuple[Any, Any]]  # the SDK gives the pair no public name
# What a server may ask or tell, and nobody here answers or reads. The session refuses the requests by name.
REFUSED = {
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
    "elicitation/create": "elicitation",
    "notifications/message": "logging",
    "notifications/resources/updated": "resource updates",
    "notifications/elicitation/complete": "elicitation",
    "notifications/tasks/status": "tasks",
}
PING = "ping"


def _ignore() -> None:
    """Nobody asked to be told."""


class FilteredStream:
    """A read stream for the SDK's session that gets only the messages that `admit` lets pass.

    `on_end` is called when there will be no more, also where `admit` raises EndOfStream.
    """

    def __init__(
        self,
        incoming: Any,
        admit: Callable[[SessionMessage | Exception], bool],
        *,
        on_end: Callable[[], None] = _ignore,
    ) -> None:
        self._incoming = incoming
        self._admit = admit
        self._on_end = on_end

    @property
    def last_context(self) -> Context | None:
        context: Context | None = getattr(self._incoming, "last_context", None)
        return context

    async def receive(self) -> SessionMessage | Exception:
        try:
            while True:
                item: SessionMessage | Exception = await self._incoming.receive()
                if self._admit(item):
                    return item
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._on_end()
            raise

    async def aclose(self) -> None:
        await self._incoming.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class MessageFilter:
    """For a lease: lets answers pass, and few requests. Progress goes to the call that asked for it.

    `on_end` is called once the server can say nothing more: there is no other sign of a lost connection.
    """

    def __init__(
        self, *, max_requests: int, on_refused: Callable[[str], None], on_end: Callable[[], None]
    ) -> None:
        self._max_requests = max_requests
        self._on_refused = on_refused
        self._on_end = on_end
        self._requests = 0
        self._relays: dict[str, ProgressRelay] = {}
        self._tokens = count(1)
        self.failure: UpstreamFailure | None = None  # why the server was cut off

    @asynccontextmanager
    async def apply(self, streams: Streams) -> AsyncIterator[tuple[Any, Any]]:
        async with streams as (incoming, outgoing):
            yield FilteredStream(incoming, self._lets_pass, on_end=self._on_end), outgoing

    def begin_call(self) -> None:
        """A new call: the server may ask anew."""
        self._requests = 0

    def add_relay(self, relay: ProgressRelay) -> int:
        """The token by which the server names the call whose progress it tells."""
        token = next(self._tokens)
        self._relays[str(token)] = relay
        return token

    def remove_relay(self, token: int) -> None:
        del self._relays[str(token)]

    def _lets_pass(self, item: SessionMessage | Exception) -> bool:
        """Whether the session should see this message. Raises EndOfStream where the server asks too much."""
        if isinstance(item, Exception):
            return False
        message = item.message
        if isinstance(message, JSONRPCNotification):
            self._take_notification(message)
            return False
        if isinstance(message, JSONRPCRequest):
            self._count_request(message)
        return True

    def _take_notification(self, message: JSONRPCNotification) -> None:
        if message.method == "notifications/progress":
            params = message.params or {}
            relay = self._relays.get(str(params.get("progressToken")))
            if relay and (progress := read_progress(params)):
                relay.put(progress)
        elif what := REFUSED.get(message.method):
            self._on_refused(what)

    def _count_request(self, message: JSONRPCRequest) -> None:
        self._requests += 1
        if message.method != PING:
            self._on_refused(REFUSED.get(message.method, "other requests"))
        if self._requests > self._max_requests:
            self.failure = UpstreamFailure(
                FailureCode.TOO_MANY_MESSAGES,
                f"The server sent more than {self._max_requests} requests of its own during a call: "
                "it was cut off",
            )
            raise anyio.EndOfStream
