"""One lease: a connection to a server that is kept, by one task, for as long as it is used."""

import asyncio
import time
import uuid
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import Context
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from math import inf
from typing import Any, NamedTuple

import anyio
from mcp import Client, MCPError
from mcp.client.session import ClientRequestContext, ClientSession
from mcp_types import INVALID_REQUEST, ErrorData

from catalog.domain.choices import Transport
from catalog.domain.connection import FailureCode, JsonObject, UpstreamFailure, resolve
from catalog.domain.upstream_calls import (
    Era,
    LeaseHolder,
    LeaseState,
    OnRefused,
    PoolLimits,
    Upstream,
    UpstreamError,
)
from catalog.upstream.calls import CallBroken, UpstreamRequest, send_request
from catalog.upstream.client import LONGEST_MESSAGE, OURSELVES, make_link
from catalog.upstream.exchange import Exchange
from catalog.upstream.failures import explain_call, explain_failure, explain_timeout
from catalog.upstream.guard import Resolver
from catalog.upstream.http import Bearer, HttpLink, has_own_token
from catalog.upstream.masking import mask_within, present, secrets_when_resolved
from catalog.upstream.message_filter import MessageFilter
from catalog.upstream.stdio import StdioLink

ELICITATION, SAMPLING, ROOTS = "elicitation", "sampling", "roots"
LONGEST_ERROR_MESSAGE = 8_000  # of a server's own error: a model reads it
TOKENS_MASKED = 5  # of those that a long connection has signed in with
PARTING_SECONDS = 5.0  # for a lost connection to say what happened


class LeaseKey(NamedTuple):
    """What calls must have in common to share a lease. `key_id` is unset where all keys do."""

    key_id: int | None
    server_id: int
    credential: str
    era: str
    answers: frozenset[str]


@dataclass(frozen=True, slots=True)
class PoolContext:
    """What a lease gets from its pool. `on_refused` gets the id of the server, and what was refused."""

    limits: PoolLimits
    environment: Mapping[str, str]
    resolver: Resolver
    on_refused: OnRefused
    on_end: Callable[["Lease"], None]


class Lease:
    """A connection in a task of its own: the SDK lets only the task that entered a client leave it.

    The task ends when the connection does, when nobody called for a while, and on `close`.
    """

    def __init__(self, key: LeaseKey, upstream: Upstream, holder: LeaseHolder, pool: PoolContext) -> None:
        """Raises UpstreamFailure where the server's settings cannot be used."""
        self.id = str(uuid.uuid4())
        self.key = key
        self.is_command = upstream.connection.transport is Transport.STDIO
        self.open_calls = 0
        self.used_at = time.monotonic()
        self.was_opened = False
        self.failure: UpstreamFailure | None = None  # why it did not open, or ended by itself
        self.calls_at_end = 0
        self._upstream = upstream
        self._holder = holder
        self._pool = pool
        self._limits = replace(
            upstream.limits,
            max_total_bytes=inf,
            max_bytes_per_second=pool.limits.bytes_per_second,
        )
        self._connection = resolve(upstream.connection, pool.environment, upstream.rules.references)
        self._secrets_of_settings = secrets_when_resolved(
            upstream.connection, self._connection, pool.environment
        )
        self._tokens: tuple[str, ...] = (upstream.token,) if upstream.token else ()
        self._bearer = Bearer(upstream.token)
        self._opened_at = self._last_used_at = datetime.now(UTC)
        self._ready = asyncio.Event()
        self._leave = asyncio.Event()
        self._done = asyncio.Event()
        self._is_closing = False
        self._session: ClientSession | None = None
        self._protocol_version = ""
        self._link: StdioLink | HttpLink | None = None
        self._messages = self._make_filter()
        self._scope = anyio.CancelScope()
        # A context of its own: what the first caller carries along is not the lease's.
        self.task = asyncio.get_running_loop().create_task(self._run(), context=Context())

    def use_token(self, token: str) -> None:
        """Sign in with a renewed token from now on, but for a greeting that is under way.

        Neither it nor those before are shown to anybody.
        """
        if self.was_opened:
            self._bearer.token = token
        if token and token not in self._tokens:
            self._tokens = (token, *self._tokens)[:TOKENS_MASKED]

    @property
    def _secrets(self) -> tuple[str, ...]:
        return (*self._tokens, *self._secrets_of_settings)

    @property
    def takes_calls(self) -> bool:
        """Whether a call may begin: the connection stands, or is being opened."""
        return not self._is_closing and not self._is_over

    @property
    def _is_over(self) -> bool:
        return self._leave.is_set() or self._done.is_set()

    @property
    def is_idle(self) -> bool:
        return self.open_calls == 0

    def state(self) -> LeaseState:
        return LeaseState(
            id=self.id,
            key_id=self.key.key_id,
            server_id=self.key.server_id,
            opened_at=self._opened_at,
            last_used_at=self._last_used_at,
            open_calls=self.open_calls,
            protocol_version=self._protocol_version,
            pid=self._link.pid if isinstance(self._link, StdioLink) else None,
        )

    def close(self) -> None:
        """End the connection now. Open calls fail."""
        self._is_closing = True
        self._leave.set()
        if not self.was_opened:
            self._scope.cancel()

    def retire(self) -> None:
        """Take no new calls; close when the open ones have ended."""
        self._is_closing = True
        if self.is_idle:
            self.close()

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """A call, from before it waits for the connection to its end."""
        self.open_calls += 1
        self._note_use()
        try:
            yield
        finally:
            self.open_calls -= 1
            self._note_use()
            if self.is_idle and self._is_closing:
                self.close()

    def _note_use(self) -> None:
        self.used_at = time.monotonic()
        self._last_used_at = datetime.now(UTC)

    async def wait_ready(self) -> None:
        """Wait until the connection stands. Who gives up does not stop it. Raises UpstreamFailure."""
        await self._ready.wait()
        if not self.was_opened:
            raise _copy(self.failure or _closed())

    def greets_with(self, token: str) -> bool:
        """Of a lease that has not been opened: whether this is the token that it signs in with."""
        return token == self._bearer.token

    async def call(self, request: UpstreamRequest, token: str) -> JsonObject:
        """The raw result. Raises UpstreamError for an error answer and CallBroken for none."""
        session = self._session
        if session is None or self._is_over:
            raise CallBroken(_copy(self.failure or _closed()), may_have_run=False, is_lease_lost=True)
        # What was given to a command's pipe may have been read.
        is_sse = self._connection.transport is Transport.SSE
        exchange = Exchange(
            can_abort=is_sse,
            was_sent=self.is_command,
            has_own_token=has_own_token(self._connection, token),
            token=token,
        )
        try:
            return await send_request(
                session,
                request,
                exchange,
                messages=self._messages,
                progress_per_second=self._pool.limits.progress_per_second,
                hide=self._hide_tokens,
            )
        except Exception as error:
            problem = error
        raise await self._explain(problem, exchange) from None

    def _hide_tokens(self, answer: Any) -> Any:
        """Without the tokens of a sign-in, which no client may see. What an admin has put into the settings
        is left as the server tells it.
        """
        return mask_within(answer, secrets=self._tokens) if self._tokens else answer

    async def _explain(self, error: Exception, exchange: Exchange) -> Exception:
        if self._is_over and exchange.failure is None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._done.wait(), PARTING_SECONDS)
            failure = self.failure or _closed()
            return CallBroken(_copy(failure), may_have_run=exchange.may_have_run, is_lease_lost=True)
        failure_of_call = explain_call(error, exchange)
        if exchange.is_session_lost or failure_of_call:
            failure = self._tidy(failure_of_call or _session_lost())
            return CallBroken(failure, may_have_run=exchange.may_have_run, is_lease_lost=False)
        assert isinstance(error, MCPError)
        message = present(error.message, secrets=self._secrets)[:LONGEST_ERROR_MESSAGE]
        return UpstreamError(error.code, message, mask_within(error.error.data, secrets=self._secrets))

    async def _run(self) -> None:
        idle_watch = asyncio.create_task(self._close_when_idle())
        try:
            await self._open_and_hold()
        except (asyncio.CancelledError, BaseExceptionGroup):
            self.failure = self.failure or _closed()  # the SDK cancels the task that entered its client
        except UpstreamFailure as failure:
            self.failure = self._tidy(failure)
        finally:
            idle_watch.cancel()
            self._session = None
            self.calls_at_end = self.open_calls
            self._leave.set()
            self._done.set()
            self._ready.set()
            self._pool.on_end(self)

    async def _open_and_hold(self) -> None:
        """One conversation, or two where a command exits on the first request of the newest protocol."""
        mode: Era = "legacy" if self._connection.transport is Transport.SSE else self._holder.era
        timeout_seconds = self._limits.connect_timeout_seconds
        started = anyio.current_time()
        await self._converse(mode, timeout_seconds)
        left_seconds = timeout_seconds - (anyio.current_time() - started)
        has_exited = self.failure is not None and self.failure.code is FailureCode.EXITED
        if has_exited and mode == "auto" and left_seconds > 0 and not (self.was_opened or self._is_closing):
            self.failure = None
            await self._converse("legacy", left_seconds)

    async def _converse(self, mode: Era, timeout_seconds: float) -> None:
        link = self._link = self._make_link()
        messages = self._messages = self._make_filter()
        failure: UpstreamFailure | None = None
        with anyio.CancelScope(deadline=anyio.current_time() + timeout_seconds) as self._scope:
            try:
                async with self._make_client(link, messages, mode) as client:
                    self._scope.deadline = inf
                    await self._hold(client, link)
                    self._scope.deadline = anyio.current_time() + self._limits.close_timeout_seconds
            except Exception as error:
                failure = explain_failure(error, link, is_listing=False)
        failure = messages.failure or failure or link.failure()
        if not self.was_opened:
            failure = failure or explain_timeout(link, is_listing=False, seconds=timeout_seconds)
        if not self._is_closing:
            self.failure = self._tidy(failure or link.ended())

    async def _hold(self, client: Client, link: StdioLink | HttpLink) -> None:
        """Let calls pass until the end of the connection, by us or by the server."""
        self._session = client.session
        self._protocol_version = client.protocol_version
        if isinstance(link, HttpLink):
            link.opened()
        self.was_opened = True
        self._ready.set()
        try:
            await self._leave.wait()
        finally:
            self._leave.set()
            self._session = None

    async def _close_when_idle(self) -> None:
        idle_seconds = self._pool.limits.idle_seconds
        while True:
            unused_seconds = time.monotonic() - self.used_at
            if self.is_idle and unused_seconds >= idle_seconds:
                break
            await asyncio.sleep(idle_seconds if not self.is_idle else idle_seconds - unused_seconds)
        self.close()

    def _make_link(self) -> StdioLink | HttpLink:
        rules, pool = self._upstream.rules, self._pool
        return make_link(
            self._connection, self._limits, rules, pool.environment, pool.resolver, bearer=self._bearer
        )

    def _make_filter(self) -> MessageFilter:
        return MessageFilter(
            max_requests=self._pool.limits.requests_per_call,
            on_refused=partial(self._pool.on_refused, self.key.server_id),
            on_end=self._note_lost,
        )

    def _note_lost(self) -> None:
        if self.was_opened:
            self._leave.set()

    def _make_client(self, link: StdioLink | HttpLink, messages: MessageFilter, mode: Era) -> Client:
        answers = self._holder.answers
        return Client(
            messages.apply(link.connect()),
            mode=mode,
            cache=None,
            client_info=OURSELVES,
            elicitation_callback=_refuse(ELICITATION) if ELICITATION in answers else None,
            sampling_callback=_refuse(SAMPLING) if SAMPLING in answers else None,
            list_roots_callback=_refuse(ROOTS) if ROOTS in answers else None,
        )

    def _tidy(self, failure: UpstreamFailure) -> UpstreamFailure:
        tidy = partial(present, secrets=self._secrets)
        stderr = self._link.stderr_tail if self._link else ""
        tail = tidy(stderr).encode()[-self._limits.stderr_tail_bytes :].decode(errors="ignore")
        return failure.reworded(tidy(failure.message)[:LONGEST_MESSAGE], stderr_tail=tail)


def _refuse(what: str) -> Callable[..., Coroutine[Any, Any, ErrorData]]:
    """What an old-era server asks cannot be handed on: there is no way back to the client that called."""

    async def refuse(context: ClientRequestContext, params: object = None) -> ErrorData:
        return ErrorData(code=INVALID_REQUEST, message=f"Not possible here: {what}")

    return refuse


def _copy(failure: UpstreamFailure) -> UpstreamFailure:
    """Several callers may get the same failure, and each raises one of its own."""
    return failure.reworded(failure.message, stderr_tail=failure.stderr_tail)


def _closed() -> UpstreamFailure:
    return UpstreamFailure(
        FailureCode.CLOSED, "The connection to the server was closed here before it answered"
    )


def _session_lost() -> UpstreamFailure:
    return UpstreamFailure(FailureCode.DISCONNECTED, "The server has forgotten the session")
