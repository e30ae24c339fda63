"""Reads every page of a list, within limits."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Protocol

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from catalog.domain.connection import FailureCode, Limits, UpstreamFailure
from catalog.upstream.message_filter import FilteredStream, Streams


class Page(Protocol):
    """What the SDK makes of an answer to a list's request."""

    @property
    def next_cursor(self) -> str | None: ...


# The SDK's call for one page of a list.
AskPage = Callable[..., Awaitable[Page]]
# Methods by the names that their answers have for the lists.
METHODS = {
    "tools": "tools/list",
    "resources": "resources/list",
    "resourceTemplates": "resources/templates/list",
    "prompts": "prompts/list",
}


class PageSieve:
    """Takes the definitions out of each page before the session sees it.

    The SDK validates a page as a whole, so one bad definition would cost all the others. It gets an empty
    page instead, and each definition is validated by itself later. Notifications are dropped and requests
    limited: the SDK starts a task for each and would keep them all.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._pages: dict[str, object] = {}
        self._requests = 0
        self._notifications = 0
        self.failure: UpstreamFailure | None = None  # why the server was cut off

    def lets_pass(self, item: SessionMessage | Exception) -> bool:
        """Whether the session should see this message. Raises EndOfStream, with `failure` set,
        past a limit.
        """
        message = item.message if isinstance(item, SessionMessage) else None
        if isinstance(message, JSONRPCRequest):
            self._requests += 1
        elif isinstance(message, JSONRPCNotification):
            self._notifications += 1
        if self._requests > self._limits.max_requests:
            raise self._cut_off(f"more than {self._limits.max_requests} requests")
        if self._notifications > self._limits.max_notifications:
            raise self._cut_off(f"more than {self._limits.max_notifications} notifications")
        return not isinstance(message, JSONRPCNotification)

    def _cut_off(self, sent: str) -> anyio.EndOfStream:
        self.failure = UpstreamFailure(
            FailureCode.TOO_MANY_MESSAGES,
            f"The server sent {sent} of its own instead of listing its tools: it was cut off",
        )
        return anyio.EndOfStream()

    @asynccontextmanager
    async def strain(self, streams: Streams) -> AsyncIterator[tuple[Any, Any]]:
        async with streams as (incoming, outgoing):
            yield FilteredStream(incoming, self._admit), outgoing

    def _admit(self, item: SessionMessage | Exception) -> bool:
        passes = self.lets_pass(item)
        if passes:
            self._take_out_lists(item)
        return passes

    def _take_out_lists(self, item: SessionMessage | Exception) -> None:
        if not isinstance(item, SessionMessage) or not isinstance(item.message, JSONRPCResponse):
            return
        self._pages = {name: item.message.result[name] for name in METHODS if name in item.message.result}
        if self._pages:
            item.message.result = {**item.message.result, **{name: [] for name in self._pages}}

    def hand_over(self, name: str) -> list[object]:
        page = self._pages.pop(name, None)
        if not isinstance(page, list):
            raise UpstreamFailure(
                FailureCode.NOT_MCP, f"The server's answer to {METHODS[name]} holds no list of {name}"
            )
        return page


async def read_pages(ask: AskPage, sieve: PageSieve, limits: Limits, *, name: str, most: int) -> list[object]:
    """All definitions, not validated yet; past `most` of them no more pages are asked for.

    Raises UpstreamFailure where the pages do not end.
    """
    found: list[object] = []
    followed: set[str] = set()
    cursor: str | None = None
    for _ in range(limits.max_pages):
        cursor = (await ask(cursor=cursor)).next_cursor
        found += sieve.hand_over(name)
        if len(found) > most or not cursor:
            return found
        if cursor in followed:
            raise UpstreamFailure(
                FailureCode.REPEATED_CURSOR,
                "The server's pages lead in a circle: it gave the same cursor twice",
            )
        followed.add(cursor)
    raise UpstreamFailure(
        FailureCode.TOO_MANY_PAGES, f"The server's list did not end after {limits.max_pages} pages"
    )
