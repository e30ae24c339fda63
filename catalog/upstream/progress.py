"""Forwards the progress of a call, no faster than anybody can read it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

logger = logging.getLogger(__name__)

OnProgress = Callable[[float, float | None, str | None], Awaitable[None]]
Hide = Callable[[Any], Any]  # gives a JSON value without what nobody may see
LONGEST_TEXT = 1000


class Progress(NamedTuple):
    done: float
    total: float | None
    text: str | None


def read_progress(params: dict[str, Any]) -> Progress | None:
    """What a progress notification says; None where it says nothing that MCP allows."""
    done, text = _read_number(params.get("progress")), params.get("message")
    if done is None:
        return None
    return Progress(done, _read_number(params.get("total")), text if isinstance(text, str) else None)


def _read_number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


class ProgressRelay:
    """Hands on the latest progress of one call, and always the last one."""

    def __init__(self, forward: OnProgress, *, per_second: float, hide: Hide) -> None:
        self._forward = forward
        self._hide = hide
        self._pause_seconds = 1 / per_second
        self._latest: Progress | None = None
        self._has_news = asyncio.Event()

    def put(self, progress: Progress) -> None:
        """Note progress. What was not forwarded yet is forgotten."""
        self._latest = progress
        self._has_news.set()

    async def run(self) -> None:
        """Forward until cancelled."""
        while True:
            await self._has_news.wait()
            self._has_news.clear()
            await self.flush()
            await asyncio.sleep(self._pause_seconds)

    async def flush(self) -> None:
        """Forward what was not forwarded yet. That a client does not take it does not end the call."""
        latest, self._latest = self._latest, None
        if latest is None:
            return
        # Hidden before it is cut: the beginning of a secret is not found any more.
        text = None if latest.text is None else self._hide(latest.text)[:LONGEST_TEXT]
        try:
            await self._forward(latest.done, latest.total, text)
        except Exception as error:
            logger.debug("progress was not taken: %s", type(error).__name__)
