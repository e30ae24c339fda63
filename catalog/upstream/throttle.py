"""Slows down a server that sends more than anybody reads."""

import asyncio
import math
import time

# What handling a line or a request costs us, in bytes that cost as much to read.
LINE_BYTES = 4096
REQUEST_BYTES = 1024 * 1024
BURST_SECONDS = 4.0


class Throttle:
    """A token bucket of bytes. Whoever reads waits here, so the server has to wait as well."""

    def __init__(self, bytes_per_second: float) -> None:
        """`math.inf` is no limit. What was not used is kept for a burst."""
        self._rate = bytes_per_second
        self._left = bytes_per_second * BURST_SECONDS
        self._at = time.monotonic()

    async def take(self, count: float) -> None:
        """Wait until so many bytes may have been read."""
        if math.isinf(self._rate):
            return
        now = time.monotonic()
        refilled = self._left + (now - self._at) * self._rate
        self._left, self._at = min(self._rate * BURST_SECONDS, refilled) - count, now
        if self._left < 0:
            await asyncio.sleep(-self._left / self._rate)

    async def take_lines(self, chunk: bytes) -> None:
        """Wait until a chunk of lines may have been read. Each line costs more than its bytes."""
        await self.take(len(chunk) + LINE_BYTES * chunk.count(b"\n"))
