"""What a call, a search and a list through the gateway cost, beside others that do the same."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import cycle

from bench.agents import percentile
from bench.gateway_instance import Measured, cpu_seconds_of, running_fastmcp_proxy, running_pass_through
from bench.mcp_callers import (
    Caller,
    Era,
    HttpCaller,
    JsonObject,
    WrongAnswer,
    calling_over_http,
    calling_over_pipe,
    opening_connections,
)
from tests.harness.rest import RestClient
from tests.harness.upstream_fixture import stdio_connection

AT_ONCE = 4
WARM_UP = 30
ROUNDS = 3
HTTP_SERVER, PIPE_SERVER = "up-0", "pipe"
ECHO = {"name": "echo", "arguments": {"text": "hello"}}

Act = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class CallTimes:
    """Of one upstream in one era, in milliseconds: p50 and p99 of each way there."""

    label: str
    direct: tuple[float, float]
    passed: tuple[float, float]
    gateway: tuple[float, float]

    @property
    def ratio(self) -> float:
        return self.gateway[0] / self.passed[0]


@dataclass(frozen=True, slots=True)
class Cost:
    """Processor time of each request, in milliseconds."""

    label: str
    cpu_ms: float
    bytes: int = 0


def fixture_command() -> list[str]:
    connection = stdio_connection()
    return [connection.command, *connection.args]


def fixture_settings(url: str = "") -> dict[str, object]:
    """As a new server is given: the fixture at an address, or as a command."""
    if url:
        return {"url": url}
    connection = stdio_connection()
    return {"command": connection.command, "args": list(connection.args), "env": dict(connection.env)}


def call_through(server: str, text: str = "hello") -> JsonObject:
    """The parameters of a call of the fixture's `echo` through the gateway."""
    return {"name": "call_tool", "arguments": {"name": f"mcp__{server}__echo", "arguments": {"text": text}}}


async def wait_until_callable(measured: Measured, servers: Sequence[str]) -> None:
    """A new server's tools are in force some moments after they have been read."""
    async with (
        calling_over_http(measured.url, Era.MODERN, key=measured.keys[0]) as gateway,
        asyncio.timeout(60),
    ):
        for server in servers:
            while not await _can_call(gateway, server):
                await asyncio.sleep(0.2)


async def _can_call(gateway: Caller, server: str) -> bool:
    try:
        await gateway.ask("tools/call", call_through(server))
    except WrongAnswer:
        return False
    return True


async def time_calls(measured: Measured, *, url: str, count: int) -> list[CallTimes]:
    return [
        await _time_calls(measured, era, url=upstream, count=count) for era in Era for upstream in (url, "")
    ]


async def _time_calls(measured: Measured, era: Era, *, url: str, count: int) -> CallTimes:
    """One call after the other, each way in turn: what else the machine does, all meet alike."""
    upstream = url or json.dumps(fixture_command())
    mode = "auto" if era is Era.MODERN else "legacy"
    async with AsyncExitStack() as stack:
        passing, _ = stack.enter_context(running_pass_through(upstream, mode))
        direct = await stack.enter_async_context(_calling_directly(url, era))
        passed = await stack.enter_async_context(calling_over_http(passing, era))
        gateway = await stack.enter_async_context(calling_over_http(measured.url, era, key=measured.keys[0]))
        through = call_through(HTTP_SERVER if url else PIPE_SERVER)
        ways: list[tuple[Caller, JsonObject]] = [(direct, ECHO), (passed, ECHO), (gateway, through)]
        times: list[list[float]] = [[] for _ in ways]
        for number in range(-WARM_UP, count):
            for (caller, params), taken in zip(ways, times, strict=True):
                started = time.perf_counter()
                await caller.ask("tools/call", params)
                if number >= 0:
                    taken.append(time.perf_counter() - started)
    label = f"{era}, {'HTTP' if url else 'stdio'} upstream"
    return CallTimes(label, *((percentile(taken, 50), percentile(taken, 99)) for taken in times))


@asynccontextmanager
async def _calling_directly(url: str, era: Era) -> AsyncIterator[Caller]:
    if url:
        async with calling_over_http(url, era) as caller:
            yield caller
    else:
        environment = dict(stdio_connection().env)
        async with calling_over_pipe(fixture_command(), era, environment=environment) as caller:
            yield caller


async def compare_calls(measured: Measured, *, url: str, count: int) -> tuple[Cost, Cost]:
    """The gateway's processor time for a call, and that of FastMCP's proxy."""
    with running_fastmcp_proxy(url) as (proxy, pid):
        async with (
            calling_over_http(proxy, Era.MODERN) as peer,
            calling_over_http(measured.url, Era.MODERN, key=measured.keys[0]) as gateway,
        ):
            ours, theirs = await _compare(
                (
                    lambda: measured.cpu_seconds("gateway"),
                    lambda: gateway.ask("tools/call", call_through(HTTP_SERVER)),
                ),
                (lambda: cpu_seconds_of(pid), lambda: peer.ask("tools/call", ECHO)),
                count=count,
                at_once=AT_ONCE,
            )
    return Cost("gateway, call", ours), Cost("FastMCP proxy, call", theirs)


async def compare_searches(
    measured: Measured, queries: Sequence[str], *, count: int, at_once: int
) -> tuple[Cost, Cost]:
    """The gateway's processor time for a search, and that of REST."""
    key, turns = measured.keys[0], (cycle(queries), cycle(queries))
    session = RestClient(measured.instance.port, key).post("/sessions", status=201)["id"]
    address = f"{measured.instance.url}/api/v1/sessions/{session}/search"
    headers = {
        "Authorization": f"Bearer {key}",
        "Content-Type": "application/json",
        "Accept-Encoding": "identity",
    }
    async with opening_connections() as http:
        gateway = HttpCaller(http, measured.url, Era.MODERN, key=key)

        async def search_by_rest() -> None:
            body = json.dumps({"query": next(turns[0]), "load": False})
            (await http.post(address, content=body, headers=headers)).raise_for_status()

        async def search_by_gateway() -> None:
            arguments = {"query": next(turns[1])}
            await gateway.ask("tools/call", {"name": "search_tools", "arguments": arguments})

        ours, theirs = await _compare(
            (lambda: measured.cpu_seconds("gateway"), search_by_gateway),
            (lambda: measured.cpu_seconds("web"), search_by_rest),
            count=count,
            at_once=at_once,
        )
    how = "one at a time" if at_once == 1 else f"{at_once} at once"
    return Cost(f"gateway, search, {how}", ours), Cost(f"REST, search, {how}", theirs)


async def _compare(*sides: tuple[Callable[[], float], Act], count: int, at_once: int) -> tuple[float, ...]:
    """Processor milliseconds of each request, the sides taking turns. Each has its caches filled first."""
    for _, act in sides:
        await _repeat(act, max(WARM_UP, count // 4), at_once)
    used = [0.0 for _ in sides]
    for _ in range(ROUNDS):
        for number, (read_cpu, act) in enumerate(sides):
            before = read_cpu()
            await _repeat(act, count // ROUNDS, at_once)
            used[number] += read_cpu() - before
    return tuple(seconds * 1000 / (count // ROUNDS * ROUNDS) for seconds in used)


async def _repeat(act: Act, count: int, at_once: int) -> None:
    left = iter(range(count))

    async def work() -> None:
        for _ in left:
            await act()

    await asyncio.gather(*(work() for _ in range(at_once)))


async def compare_lists(few: Measured, many: Measured, *, labels: Sequence[str], count: int) -> list[Cost]:
    """The list of tools at two instances, the one with few tools first."""
    async with (
        calling_over_http(few.url, Era.MODERN, key=few.keys[0]) as of_few,
        calling_over_http(many.url, Era.MODERN, key=many.keys[0]) as of_many,
    ):
        used = await _compare(
            (lambda: few.cpu_seconds("gateway"), lambda: of_few.ask("tools/list")),
            (lambda: many.cpu_seconds("gateway"), lambda: of_many.ask("tools/list")),
            count=count,
            at_once=1,
        )
        received = (of_few.received_bytes, of_many.received_bytes)
    return [Cost(*one) for one in zip(labels, used, received, strict=True)]
