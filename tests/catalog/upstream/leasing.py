"""Calls of a server over a pool of leases, made short for tests."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from catalog.domain.addresses import AddressRules
from catalog.domain.connection import Connection, JsonObject, Limits, Rules
from catalog.domain.upstream_calls import Era, LeaseHolder, PoolLimits, Upstream
from catalog.upstream.leases import LeasePool

AT_HOME = Rules(addresses=AddressRules(allow_private=True))
PATIENCE_SECONDS = 20.0


def upstream_of(connection: Connection, **changes: Any) -> Upstream:
    fields: dict[str, Any] = {
        "server_id": 1,
        "name": "fixture",
        "connection": connection,
        "credential": "first",
        "limits": Limits(),
        "rules": AT_HOME,
    }
    return Upstream(**{**fields, **changes})


class Caller:
    """One key that calls tools of one server."""

    def __init__(self, pool: LeasePool, upstream: Upstream, *, key_id: int = 1, era: Era = "auto") -> None:
        self.pool = pool
        self.upstream = upstream
        self.holder = LeaseHolder(key_id, era)

    async def call(
        self,
        tool: str,
        *,
        timeout_seconds: float = PATIENCE_SECONDS,
        on_progress: Callable[..., Awaitable[None]] | None = None,
        input_schema: Mapping[str, Any] | None = None,
        meta: JsonObject | None = None,
        **arguments: Any,
    ) -> JsonObject:
        params: JsonObject = {"name": tool, "arguments": arguments}
        return await self.pool.request(
            self.upstream,
            self.holder,
            "tools/call",
            {**params, "_meta": meta} if meta else params,
            timeout_seconds=timeout_seconds,
            on_progress=on_progress,
            input_schema=input_schema,
        )

    async def text(self, tool: str, **more: Any) -> str:
        return str((await self.call(tool, **more))["content"][0]["text"])


@asynccontextmanager
async def open_pool(**limits: Any) -> AsyncIterator[tuple[LeasePool, Counter[str]]]:
    """A pool, and a count of what it refused."""
    refused: Counter[str] = Counter()
    environment: Mapping[str, str] = limits.pop("environment", {})
    pool = LeasePool(
        PoolLimits(**limits),
        environment=environment,
        on_refused=lambda server_id, what: refused.update([what]),
    )
    try:
        yield pool, refused
    finally:
        await pool.aclose()
        # On a busy machine a lease may take longer to end: what it started must not outlive the event loop.
        await until(lambda: not pool.snapshot())


async def until(is_so: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not is_so():
            await asyncio.sleep(0.01)


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def descendants(pid: int) -> list[int]:
    """All processes below one."""
    below = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (entry / "stat").exists():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if parent == pid:
                below += [int(entry.name), *descendants(int(entry.name))]
    return below
