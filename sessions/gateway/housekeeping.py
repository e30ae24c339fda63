"""What a gateway process does beside answering: ends what was revoked, announces changes, reports itself."""

import asyncio
import logging
import uuid
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from django.db import DatabaseError, InterfaceError
from django.utils import timezone

from catalog.access import key_uses
from catalog.domain.upstream_calls import BreakerState
from catalog.upstream.leases import LeasePool
from sessions.gateway.open_calls import OpenCalls
from sessions.gateway.streams import Listeners, OpenRequests, find_revoked, read_digests
from sessions.gateway.threads import Threads
from sessions.services import calls, gateway_processes, write_behind
from sessions.services.gateway_processes import LeaseRow, UpstreamRow

ROUND_SECONDS = 1.0
REPORT_EVERY_ROUNDS = 2
SHUT_DOWN_SECONDS = 1.0
logger = logging.getLogger(__name__)


class Refusals:
    """What was refused to servers, counted by server and name."""

    def __init__(self) -> None:
        self._counts: defaultdict[int, Counter[str]] = defaultdict(Counter)

    def note(self, server_id: int, what: str) -> None:
        self._counts[server_id][what] += 1

    def counts(self) -> Mapping[int, Mapping[str, int]]:
        return self._counts


@dataclass(slots=True, kw_only=True)
class Housekeeping:
    process: str
    pool: LeasePool
    threads: Threads
    requests: OpenRequests
    listeners: Listeners
    refusals: Refusals
    open_calls: OpenCalls
    started_at: datetime = field(default_factory=timezone.now)
    _rounds: int = 0

    async def run(self) -> None:
        """Until it is cancelled. A round that fails is logged, and the next one tries again."""
        while True:
            try:
                await self._make_round()
            except (DatabaseError, InterfaceError) as error:
                logger.warning("the gateway's housekeeping waits for the database: %s", error)
            except Exception:
                logger.exception("the gateway's housekeeping failed")
            await asyncio.sleep(ROUND_SECONDS)

    async def shut_down(self) -> None:
        """Write what waits to be written, and take this process out of what is shown."""
        try:
            async with asyncio.timeout(SHUT_DOWN_SECONDS):
                for flush in (calls.flush, write_behind.flush, key_uses.flush):
                    await self.threads.run(flush)
                await self.threads.run(gateway_processes.remove, self.process)
        except (TimeoutError, DatabaseError, InterfaceError) as error:
            logger.warning("the gateway could not sign off: %s", error)

    async def _make_round(self) -> None:
        await self._end_revoked()
        if policies := self.listeners.policies():
            await self.listeners.announce(await self.threads.run(read_digests, policies))
        if self._rounds % REPORT_EVERY_ROUNDS == 0:
            await self._report()
        self._rounds += 1

    async def _end_revoked(self) -> None:
        holders = {lease.key_id for lease in self.pool.snapshot() if lease.key_id is not None}
        wanted = holders.union(self.requests.keys())
        if not wanted:
            return
        revoked = await self.threads.run(find_revoked, wanted)
        self.requests.end(revoked)
        for key_id in revoked:
            await self.pool.close_of_key(key_id)

    async def _report(self) -> None:
        leases = [
            LeaseRow(
                id=uuid.UUID(lease.id),
                server_id=lease.server_id,
                key_id=lease.key_id,
                opened_at=lease.opened_at,
                last_used_at=lease.last_used_at,
                open_calls=lease.open_calls,
                protocol_version=lease.protocol_version,
            )
            for lease in self.pool.snapshot()
        ]
        report = partial(
            gateway_processes.report,
            process=self.process,
            started_at=self.started_at,
            leases=leases,
            upstreams=self._upstreams(),
            open_streams=self.listeners.count,
            open_calls=self.open_calls.count,
        )
        for lease_id in await self.threads.run(report):
            await self.pool.close_lease(str(lease_id))

    def _upstreams(self) -> list[UpstreamRow]:
        """Servers that failed, and those that were refused something."""
        breakers = {state.server_id: state for state in self.pool.breakers()}
        refused = self.refusals.counts()
        return [
            _describe(server_id, breakers.get(server_id), refused.get(server_id, {}))
            for server_id in sorted({*breakers, *refused})
        ]


def _describe(server_id: int, state: BreakerState | None, refused: Mapping[str, int]) -> UpstreamRow:
    if state is None:
        return UpstreamRow(server_id=server_id, refused=dict(refused))
    return UpstreamRow(
        server_id=server_id,
        breaker=str(state.position),
        failures=state.failures,
        open_until=state.open_until,
        error=state.last_failure,
        refused=dict(refused),
    )
