"""Clients that keep calling tools through the gateway, and what becomes of them when it is killed."""

import asyncio
import json
import os
import random
import signal
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from bench.agents import percentile
from bench.gateway_costs import PIPE_SERVER, call_through
from bench.gateway_instance import Measured, manage, running_second_gateway
from bench.mcp_callers import Caller, Era, HttpCaller, JsonObject, WrongAnswer, opening_connections
from tests.harness.nodes import command_of, descendants_of

CLIENTS, SDK_CLIENTS = 200, 4
PAUSE_SECONDS = 5.0
SETTLED_SECONDS = 60.0
MEMORY_SAMPLES = 5
KILL_CLIENTS, KILL_PAUSE_SECONDS, AROUND_KILL_SECONDS = 40, 1.0, 8.0
RETRY_SECONDS = 0.2
RESTART_WITHIN_SECONDS = 60.0
FLUSH_SECONDS = 3.0
READ_CALLS = """
import json
from sessions.models import Call
for text in Call.objects.filter(arguments__contains="kill-").values_list("arguments", flat=True):
    print(text)
"""


@dataclass
class Tally:
    """Times in seconds; `answered_at` says when each call, by its text, was answered."""

    times: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    answered_at: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LoadResult:
    calls: int
    p50: float
    p99: float
    cpu_ms: float
    memory_mb: tuple[float, float]  # once it had settled, and at the end
    errors: Sequence[str]
    served: float  # of the calls that were due

    @property
    def growth(self) -> float:
        return self.memory_mb[1] / self.memory_mb[0]


@dataclass(frozen=True, slots=True)
class KillResult:
    """`lost_seconds`: how long before the kill the oldest call that is not recorded was answered."""

    calls: int
    recorded: int
    lost_seconds: float
    away_seconds: float
    errors_after: Sequence[str]
    errors_beside: Sequence[str]
    left_behind: Sequence[str]


class SdkCaller:
    """A client as agents have it."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def ask(self, method: str, params: JsonObject | None = None) -> JsonObject:
        assert params is not None
        result = await self._client.call_tool(params["name"], params["arguments"])
        if result.is_error:
            raise WrongAnswer(str(result.content))
        return {}


@asynccontextmanager
async def _sdk_caller(url: str, key: str, era: Era) -> AsyncIterator[Caller]:
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30, trust_env=False) as http,
        Client(
            streamable_http_client(url, http_client=http),
            mode="auto" if era is Era.MODERN else "legacy",
            cache=None,
        ) as client,
    ):
        yield SdkCaller(client)


async def run_load(measured: Measured, servers: Sequence[str], *, seconds: float) -> LoadResult:
    """A call per client every five seconds; each goes over the servers in turn."""
    tally = Tally()
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(opening_connections())
        callers: list[Caller] = [
            HttpCaller(http, measured.url, Era.MODERN, key=_one_of(measured.keys, number))
            for number in range(CLIENTS - SDK_CLIENTS)
        ]
        for number, era in zip(range(SDK_CLIENTS), [*Era, *Era], strict=True):
            key = _one_of(measured.keys, number)
            callers.append(await stack.enter_async_context(_sdk_caller(measured.url, key, era)))
        ends_at, before = time.monotonic() + seconds, measured.cpu_seconds("gateway")
        clients = [
            asyncio.create_task(_keep_calling(caller, number, servers, tally, ends_at))
            for number, caller in enumerate(callers)
        ]
        settled_seconds = min(SETTLED_SECONDS, seconds / 3)
        await asyncio.sleep(settled_seconds)
        settled = await _read_memory(measured)
        await asyncio.wait(clients)
        for client in clients:
            client.result()
        used = measured.cpu_seconds("gateway") - before
        return LoadResult(
            calls=len(tally.times),
            p50=percentile(tally.times, 50),
            p99=percentile(tally.times, 99),
            cpu_ms=used * 1000 / max(len(tally.times), 1),
            memory_mb=(settled, await _read_memory(measured)),
            errors=tally.errors,
            served=len(tally.times) / (CLIENTS * seconds / PAUSE_SECONDS),
        )


def _one_of(keys: Sequence[str], number: int) -> str:
    return keys[number % len(keys)]


async def _keep_calling(
    caller: Caller, number: int, servers: Sequence[str], tally: Tally, ends_at: float
) -> None:
    due = time.monotonic() + random.uniform(0, PAUSE_SECONDS)
    turn = number
    while due < ends_at:
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        due += PAUSE_SECONDS
        turn += 1
        started = time.monotonic()
        try:
            await caller.ask("tools/call", call_through(servers[turn % len(servers)]))
        except Exception as error:  # whatever it is, it is counted and shown
            tally.errors.append(f"{type(error).__name__}: {error}")
        else:
            tally.times.append(time.monotonic() - started)


async def _read_memory(measured: Measured) -> float:
    """The median of some looks."""
    looks = []
    for _ in range(MEMORY_SAMPLES):
        looks.append(measured.memory_mb("gateway"))
        await asyncio.sleep(0.2)
    return sorted(looks)[MEMORY_SAMPLES // 2]


async def run_kill(measured: Measured, servers: Sequence[str]) -> KillResult:
    """`kill -9` under load, with a second gateway beside it that has clients of the same keys."""
    tally, beside = Tally(), Tally()
    with running_second_gateway(measured.instance) as port:
        async with opening_connections() as http:
            over = asyncio.Event()
            clients = [
                asyncio.create_task(_call_until(over, caller, f"kill-{number}", servers, tallied))
                for number, (caller, tallied) in enumerate(_callers(measured, http, port, tally, beside))
            ]
            await HttpCaller(http, measured.url, Era.MODERN, key=measured.keys[0]).ask(
                "tools/call", call_through(PIPE_SERVER)
            )
            await asyncio.sleep(AROUND_KILL_SECONDS)
            old = descendants_of(measured.instance.pid_of("gateway"))
            killed_at = time.monotonic()
            os.kill(old[0], signal.SIGKILL)
            back_at = await _wait_for_answers(tally, killed_at)
            errors_before = len(tally.errors)
            await asyncio.sleep(AROUND_KILL_SECONDS)
            over.set()
            await asyncio.gather(*clients)
    await asyncio.sleep(FLUSH_SECONDS)
    recorded = _read_recorded(measured)
    answered = {**tally.answered_at, **beside.answered_at}
    lost = [killed_at - answered[text] for text in answered.keys() - recorded]
    return KillResult(
        calls=len(answered),
        recorded=len(answered.keys() & recorded),
        lost_seconds=max(lost, default=0.0),
        away_seconds=back_at - killed_at,
        errors_after=tally.errors[errors_before:],
        errors_beside=beside.errors,
        left_behind=[f"{pid}: {command}" for pid in old if (command := command_of(pid))],
    )


def _callers(
    measured: Measured, http: httpx2.AsyncClient, port: int, tally: Tally, beside: Tally
) -> list[tuple[Caller, Tally]]:
    """Every fourth speaks to the second gateway."""
    second = f"http://127.0.0.1:{port}/mcp"
    return [
        (HttpCaller(http, url, Era.MODERN, key=_one_of(measured.keys, number // 2)), tallied)
        for number in range(KILL_CLIENTS)
        for url, tallied in [(second, beside) if number % 4 == 0 else (measured.url, tally)]
    ]


async def _call_until(
    over: asyncio.Event, caller: Caller, name: str, servers: Sequence[str], tally: Tally
) -> None:
    """As an agent would: what failed is tried again."""
    turn = 0
    await asyncio.sleep(random.uniform(0, KILL_PAUSE_SECONDS))
    while not over.is_set():
        turn += 1
        text = f"{name}-{turn}"
        try:
            await caller.ask("tools/call", call_through(servers[turn % len(servers)], text))
        except (httpx2.HTTPError, WrongAnswer) as error:
            tally.errors.append(f"{type(error).__name__}: {error}")
            await asyncio.sleep(RETRY_SECONDS)
        else:
            tally.answered_at[text] = time.monotonic()
            await asyncio.sleep(KILL_PAUSE_SECONDS)


async def _wait_for_answers(tally: Tally, since: float) -> float:
    """When a call was answered for the first time after the kill and every client had a turn since."""
    await _wait_until(lambda: max(tally.answered_at.values()) > since + RETRY_SECONDS)
    first = min(at for at in tally.answered_at.values() if at > since + RETRY_SECONDS)
    await asyncio.sleep(2 * KILL_PAUSE_SECONDS)
    return first


async def _wait_until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(RESTART_WITHIN_SECONDS):
        while not condition():
            await asyncio.sleep(RETRY_SECONDS / 2)


def _read_recorded(measured: Measured) -> set[str]:
    data = Path(measured.instance.environment["TOOLSEARCH_DATA"])
    lines = manage(data, "shell", "--verbosity", "0", "--command", READ_CALLS)
    return {json.loads(line)["text"] for line in lines}
