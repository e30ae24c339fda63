"""Sends MCP requests as plain JSON, over HTTP or a pipe: a caller that costs next to nothing itself."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from enum import StrEnum
from itertools import count
from typing import Any, Protocol

import httpx2

JsonObject = dict[str, Any]
TIMEOUT_SECONDS = 30.0
LONGEST_LINE_BYTES = 4 * 1024 * 1024


class Era(StrEnum):
    MODERN = "2026-07-28"
    LEGACY = "2025-11-25"


CLIENT = {"name": "bench", "version": "1"}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": Era.MODERN,
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}


class WrongAnswer(Exception):
    """Something other than a result without an error."""


class Caller(Protocol):
    async def ask(self, method: str, params: JsonObject | None = None) -> JsonObject:
        """The result. Raises WrongAnswer, or what the connection raises."""


class HttpCaller:
    """Posts to one address. `received_bytes` is the size of the last answer."""

    def __init__(self, http: httpx2.AsyncClient, url: str, era: Era, *, key: str = "") -> None:
        self._http, self._url, self._era = http, url, era
        self._numbers = count(1)
        self.received_bytes = 0
        self._headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Accept-Encoding": "identity",
            "MCP-Protocol-Version": era,
            "User-Agent": "bench/1",
            **({"Authorization": f"Bearer {key}"} if key else {}),
        }

    async def ask(self, method: str, params: JsonObject | None = None) -> JsonObject:
        headers = dict(self._headers)
        if self._era is Era.MODERN:
            headers["Mcp-Method"] = method
            if params and "name" in params:
                headers["Mcp-Name"] = params["name"]
        message = write_request(next(self._numbers), method, params or {}, self._era)
        answer = await self._http.post(self._url, content=message, headers=headers)
        self.received_bytes = len(answer.content)
        if session := answer.headers.get("mcp-session-id"):
            self._headers["Mcp-Session-Id"] = session
        if answer.status_code != httpx2.codes.OK:
            raise WrongAnswer(f"{answer.status_code} {answer.text[:200]}")
        return read_result(_unwrap(answer.text))

    async def initialize(self) -> None:
        """As a client of the old era begins."""
        await self.ask("initialize", _GREETING)
        note = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"})
        await self._http.post(self._url, content=note, headers=self._headers)


class PipeCaller:
    """Writes to a server's input and reads its output, a line for each message, one at a time."""

    def __init__(self, process: asyncio.subprocess.Process, era: Era) -> None:
        self._process, self._era = process, era
        self._numbers = count(1)

    async def ask(self, method: str, params: JsonObject | None = None) -> JsonObject:
        number = next(self._numbers)
        self._write(write_request(number, method, params or {}, self._era))
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            if json.loads(line).get("id") == number:
                return read_result(line)
        raise WrongAnswer("the server ended")

    async def initialize(self) -> None:
        await self.ask("initialize", _GREETING)
        self._write(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))

    def _write(self, message: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{message}\n".encode())


_GREETING: JsonObject = {"protocolVersion": Era.LEGACY, "capabilities": {}, "clientInfo": CLIENT}


@asynccontextmanager
async def calling_over_http(url: str, era: Era, *, key: str = "") -> AsyncIterator[HttpCaller]:
    async with opening_connections() as http:
        caller = HttpCaller(http, url, era, key=key)
        if era is Era.LEGACY:
            await caller.initialize()
        yield caller


@asynccontextmanager
async def opening_connections() -> AsyncIterator[httpx2.AsyncClient]:
    """Connections that many callers may share, as many as they need at once."""
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx2.AsyncClient(timeout=TIMEOUT_SECONDS, limits=limits, trust_env=False) as http:
        yield http


@asynccontextmanager
async def calling_over_pipe(
    command: Sequence[str], era: Era, *, environment: Mapping[str, str]
) -> AsyncIterator[PipeCaller]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, stdin=pipe, stdout=pipe, stderr=sys.stderr, env=environment, limit=LONGEST_LINE_BYTES
    )
    try:
        caller = PipeCaller(process, era)
        if era is Era.LEGACY:
            await caller.initialize()
        yield caller
    finally:
        process.kill()
        await process.wait()


def write_request(number: int, method: str, params: JsonObject, era: Era) -> str:
    if era is Era.MODERN:
        params = {**params, "_meta": ENVELOPE}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def read_result(message: str | bytes) -> JsonObject:
    result = json.loads(message).get("result")
    if not isinstance(result, dict) or result.get("isError"):
        raise WrongAnswer(f"{message[:300]!r}")
    return result


def _unwrap(text: str) -> str:
    """The last message of a stream of events; other answers are one message."""
    if text.startswith("{"):
        return text
    lines = [line[len("data:") :].strip() for line in text.splitlines() if line.startswith("data:")]
    found = [line for line in lines if line]
    if not found:
        raise WrongAnswer("a stream without a message")
    return found[-1]
