"""The pool of leases: the long-lived connections by which the gateway calls servers."""

import asyncio
import os
from collections.abc import Callable, Mapping
from typing import Any

from catalog.domain.choices import Transport
from catalog.domain.connection import SIGN_IN_CODES, FailureCode, JsonObject, UpstreamFailure
from catalog.domain.upstream_calls import (
    BreakerState,
    CallTimedOut,
    LeaseHolder,
    LeaseState,
    OnRefused,
    PoolLimits,
    Upstream,
    UpstreamBusy,
    UpstreamError,
)
from catalog.upstream.breaker import Breakers
from catalog.upstream.calls import CallBroken, UpstreamRequest
from catalog.upstream.guard import Resolver, resolve_host
from catalog.upstream.lease import Lease, LeaseKey, PoolContext
from catalog.upstream.progress import OnProgress

__all__ = [
    "CallTimedOut",
    "LeaseHolder",
    "LeasePool",
    "LeaseState",
    "PoolLimits",
    "Upstream",
    "UpstreamError",
]

BUSY_SECONDS = 5.0  # when to come back after a refusal
CLOSE_SECONDS = 3.0
CANCEL_SECONDS = 1.0
# Not the server's failures: nothing was sent to it, or it answered, and too much.
_NOT_COUNTED = frozenset(
    {
        *(FailureCode.MISSING_VARIABLE, FailureCode.SECRETS_UNREADABLE, FailureCode.STDIO_NOT_ALLOWED),
        *(FailureCode.COMMAND_NOT_FOUND, FailureCode.FOLDER_NOT_FOUND, FailureCode.INVALID_ADDRESS),
        *(FailureCode.BLOCKED_ADDRESS, FailureCode.TOO_LARGE, FailureCode.TOO_MANY_MESSAGES),
        *(FailureCode.CLOSED, FailureCode.BUSY, FailureCode.SUSPENDED, *SIGN_IN_CODES),
    }
)
# Nor of one call: the answer of one tool.
_NOT_COUNTED_OF_CALLS = _NOT_COUNTED | {FailureCode.NOT_MCP, FailureCode.UNEXPECTED}


def _ignore_refusal(server_id: int, what: str) -> None:
    """Nobody counts."""


class LeasePool:
    """All leases of this process. It belongs to one event loop.

    `on_refused` is called with a server's id and what it asked or told in vain, such as `sampling` or
    `logging`. It is called for each such message, so it must be quick.
    """

    def __init__(
        self,
        limits: PoolLimits | None = None,
        *,
        environment: Mapping[str, str] | None = None,
        resolver: Resolver = resolve_host,
        on_refused: OnRefused = _ignore_refusal,
    ) -> None:
        """`environment` is where `${VAR}` is looked up, by default this process's own."""
        self._limits = limits or PoolLimits()
        self._context = PoolContext(
            limits=self._limits,
            environment=os.environ if environment is None else environment,
            resolver=resolver,
            on_refused=on_refused,
            on_end=self._note_end,
        )
        self._leases: dict[LeaseKey, Lease] = {}  # those that take calls
        self._all: dict[str, Lease] = {}
        self._breakers = Breakers()
        self._is_closed = False

    async def request(
        self,
        upstream: Upstream,
        holder: LeaseHolder,
        method: str,
        params: JsonObject | None = None,
        *,
        timeout_seconds: float,
        on_progress: OnProgress | None = None,
        input_schema: Mapping[str, Any] | None = None,
    ) -> JsonObject:
        """The raw result of a request, in wire form; a modern server's `input_required` as it is.

        `input_schema` is that of the tool that is called: some of its parameters may have to be headers.
        Raises UpstreamError where the server answers with an error, CallTimedOut, and UpstreamFailure for
        every other failure. Cancelling the caller cancels the request at the server.
        """
        request = UpstreamRequest(method, params or {}, on_progress, input_schema)
        limit = asyncio.timeout(timeout_seconds)
        try:
            async with limit:
                return await self._request(upstream, holder, request)
        except TimeoutError:
            if limit.expired():
                raise CallTimedOut(timeout_seconds) from None
            raise

    def snapshot(self) -> list[LeaseState]:
        """Every lease, also those that are just being opened or closed."""
        return [lease.state() for lease in self._all.values()]

    def breakers(self) -> list[BreakerState]:
        """Every server that failed and has not answered since."""
        return self._breakers.states()

    async def close_lease(self, lease_id: str) -> bool:
        """Close a lease, and fail its calls. Returns whether there was one."""
        lease = self._all.get(lease_id)
        await self._close([lease] if lease else [])
        return lease is not None

    async def close_of_key(self, key_id: int) -> int:
        """Close the leases that are one key's alone. Returns how many."""
        leases = [lease for lease in self._all.values() if lease.key.key_id == key_id]
        await self._close(leases)
        return len(leases)

    async def aclose(self) -> None:
        """Close everything, for good, within a few seconds."""
        self._is_closed = True
        await self._close(list(self._all.values()))

    async def _close(self, leases: list[Lease]) -> None:
        for lease in leases:
            lease.close()
        tasks = {lease.task for lease in leases}
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=CLOSE_SECONDS)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=CANCEL_SECONDS)

    async def _request(self, upstream: Upstream, holder: LeaseHolder, request: UpstreamRequest) -> JsonObject:
        server = upstream.server_id, upstream.credential
        with self._breakers.passed(*server):
            try:
                result = await self._send_with_retry(upstream, holder, request)
            except UpstreamError:
                self._breakers.note_success(*server)
                raise
            except CallBroken as broken:
                # The loss of a lease was counted when it ended, once for all its calls.
                if not broken.is_lease_lost and broken.failure.code not in _NOT_COUNTED_OF_CALLS:
                    self._breakers.note_failure(*server, broken.failure)
                raise broken.failure from None
            self._breakers.note_success(*server)
            return result

    async def _send_with_retry(
        self, upstream: Upstream, holder: LeaseHolder, request: UpstreamRequest
    ) -> JsonObject:
        """Once more over a new connection, where it is certain that the server did not get the request."""
        try:
            return await self._send_once(upstream, holder, request)
        except CallBroken as broken:
            if broken.may_have_run:
                raise
        return await self._send_once(upstream, holder, request)

    async def _send_once(
        self, upstream: Upstream, holder: LeaseHolder, request: UpstreamRequest
    ) -> JsonObject:
        lease = self._lease_for(upstream, holder)
        with lease.in_use():
            try:
                await lease.wait_ready()
            except UpstreamFailure as failure:
                if failure.code not in SIGN_IN_CODES or lease.greets_with(upstream.token):
                    raise
                # Another call's token was refused, which says nothing of this one's.
                raise CallBroken(failure, may_have_run=False, is_lease_lost=True) from None
            try:
                return await lease.call(request, upstream.token)
            except CallBroken as broken:
                if not broken.may_have_run:
                    lease.retire()
                raise

    def _lease_for(self, upstream: Upstream, holder: LeaseHolder) -> Lease:
        if self._is_closed:
            raise UpstreamFailure(FailureCode.CLOSED, "No server is called any more: the gateway is stopping")
        key = LeaseKey(
            None if upstream.keeps_no_state else holder.key_id,
            upstream.server_id,
            upstream.credential,
            holder.era,
            holder.answers,
        )
        lease = self._leases.get(key)
        if lease and lease.takes_calls:
            lease.use_token(upstream.token)
            return lease
        self._retire_others(key)
        self._make_room(key, is_command=upstream.connection.transport is Transport.STDIO)
        lease = Lease(key, upstream, holder, self._context)
        self._leases[key] = self._all[lease.id] = lease
        return lease

    def _retire_others(self, key: LeaseKey) -> None:
        """Leases of the same holder with another credential: the server's settings have changed."""
        for lease in self._taking_calls():
            is_same = (lease.key.key_id, lease.key.server_id) == (key.key_id, key.server_id)
            if is_same and lease.key.credential != key.credential:
                lease.retire()

    def _taking_calls(self) -> list[Lease]:
        return [lease for lease in self._all.values() if lease.takes_calls]

    def _make_room(self, key: LeaseKey, *, is_command: bool) -> None:
        """Close the longest unused leases where there are too many. Raises UpstreamBusy."""
        limits = self._limits
        caps: list[tuple[int, str, Callable[[Lease], bool]]] = [
            (limits.total, "in all", lambda lease: True),
            (limits.per_server, "for this server", lambda lease: lease.key.server_id == key.server_id),
        ]
        if key.key_id is not None:
            caps.append((limits.per_key, "for this key", lambda lease: lease.key.key_id == key.key_id))
        if is_command:
            caps.append((limits.commands, "to commands", lambda lease: lease.is_command))
        for cap, where, counts in caps:
            self._keep_below(cap, where, list(filter(counts, self._taking_calls())))

    def _keep_below(self, cap: int, where: str, leases: list[Lease]) -> None:
        idle = sorted((lease for lease in leases if lease.is_idle), key=lambda lease: lease.used_at)
        excess = len(leases) - cap + 1
        if excess > len(idle):
            raise UpstreamBusy(
                f"All {cap} connections {where} are in use: try again in a few seconds",
                retry_after_seconds=BUSY_SECONDS,
            )
        for lease in idle[: max(excess, 0)]:
            lease.close()

    def _note_end(self, lease: Lease) -> None:
        self._all.pop(lease.id, None)
        if self._leases.get(lease.key) is lease:
            del self._leases[lease.key]
        was_missed = not lease.was_opened or lease.calls_at_end > 0
        if was_missed and lease.failure and lease.failure.code not in _NOT_COUNTED:
            self._breakers.note_failure(lease.key.server_id, lease.key.credential, lease.failure)
