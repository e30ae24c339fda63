"""Requests to servers that were signed in to: with a good token, and once more where it was refused."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any

from catalog.domain.connection import SIGN_IN_CODES, UpstreamFailure
from catalog.domain.upstream_calls import CallTimedOut, LeaseHolder, Upstream
from catalog.models import Server
from catalog.services import access_tokens
from catalog.upstream.leases import LeasePool
from sessions.gateway.answers import JsonObject
from sessions.gateway.threads import Threads

# They wait for authorization servers, so they have threads of their own.
TOKEN_THREADS = 8
NoteToken = Callable[[str], None]
Ask = Callable[[Upstream], Awaitable[JsonObject]]


class SignedInRequests:
    def __init__(self, pool: LeasePool) -> None:
        self._pool = pool
        self._threads = Threads(TOKEN_THREADS)

    async def request(
        self,
        upstream: Upstream,
        holder: LeaseHolder,
        method: str,
        params: JsonObject,
        *,
        timeout_seconds: float,
        note_token: NoteToken | None = None,
        **options: Any,
    ) -> JsonObject:
        """As `LeasePool.request`, which gets the options. `note_token` hears of each token that is sent.

        Within the time, a token is waited for too.
        """
        options |= {"holder": holder, "method": method, "params": params, "timeout_seconds": timeout_seconds}
        limit = asyncio.timeout(timeout_seconds)
        try:
            async with limit:
                return await self._ask(
                    upstream, partial(self._pool.request, **options), note_token or _ignore
                )
        except TimeoutError:
            if limit.expired():
                raise CallTimedOut(timeout_seconds) from None
            raise

    async def _ask(self, upstream: Upstream, ask: Ask, note: NoteToken) -> JsonObject:
        if upstream.needs_token:
            upstream = replace(upstream, token=await self._threads.run(_find_token, upstream))
        note(upstream.token)
        try:
            return await ask(upstream)
        except UpstreamFailure as failure:
            if failure.code not in SIGN_IN_CODES or failure.challenge is None:
                raise
            token = await self._threads.run(_renew, upstream, failure)
        upstream = replace(upstream, token=token)
        note(token)
        try:
            return await ask(upstream)
        except UpstreamFailure as failure:
            if failure.code not in SIGN_IN_CODES:
                raise
            raise await self._threads.run(_end, upstream, failure) from None

    def close(self) -> None:
        self._threads.close()


def _ignore(token: str) -> None:
    """Nothing of it is recorded."""


def _find_token(upstream: Upstream) -> str:
    return access_tokens.fresh_access_token(_server_of(upstream))


def _renew(upstream: Upstream, failure: UpstreamFailure) -> str:
    return access_tokens.renew_refused_token(_server_of(upstream), upstream.token, failure)


def _end(upstream: Upstream, failure: UpstreamFailure) -> UpstreamFailure:
    return access_tokens.end_refused_grant(_server_of(upstream), upstream.token, failure)


def _server_of(upstream: Upstream) -> Server:
    return access_tokens.find_server_at(upstream.server_id, upstream.connection.url)
