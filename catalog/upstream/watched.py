"""The stream of a server's messages, looked at before the SDK's session reads them."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from contextvars import Context
from types import TracebackType
from typing import Any, Self

import anyio
from mcp.shared.message import SessionMessage

Streams = AbstractAsyncContextManager[tuple[Any, Any]]  # the SDK gives the pair no public name


def _ignore() -> None:
    """Nobody asked to be told."""


class WatchedStream:
    """A read stream for the SDK's session that gets only the messages that `admit` lets pass.

    `on_end` is called when there will be no more, be it that `admit` raises EndOfStream.
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
