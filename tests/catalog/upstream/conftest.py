"""Servers to talk to, and a roll call that tells when every process of a server is dead."""

import asyncio
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from catalog import upstream
from catalog.domain.addresses import AddressRules
from catalog.domain.choices import Transport
from catalog.domain.connection import Connection, Limits, Rules, ServerListing

SERVERS = Path(__file__).with_name("servers")
PATIENCE_SECONDS = 20.0

AT_HOME = Rules(addresses=AddressRules(allow_private=True))
ListOdd = Callable[..., ServerListing]


class RollCall:
    """Fixture processes call in here and stay on the line, so a closed line is a dead process."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(PATIENCE_SECONDS)
        self.port = str(self._listener.getsockname()[1])
        self._lines: list[socket.socket] = []

    def hear(self, count: int) -> list[int]:
        """Wait until so many processes have called in; their ids."""
        pids = []
        for _ in range(count):
            line, _ = self._listener.accept()
            line.settimeout(PATIENCE_SECONDS)
            self._lines.append(line)
            pids.append(int(line.makefile().readline()))
        return pids

    def assert_all_dead(self) -> None:
        self._listener.setblocking(False)
        while True:
            try:
                line, _ = self._listener.accept()
            except BlockingIOError:
                break
            line.settimeout(PATIENCE_SECONDS)
            line.makefile().readline()
            self._lines.append(line)
        assert self._lines, "no process called in"
        for line in self._lines:
            assert line.recv(1) == b""

    def close(self) -> None:
        for line in (*self._lines, self._listener):
            line.close()


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def roll_call() -> Iterator[RollCall]:
    call = RollCall()
    yield call
    call.close()


@pytest.fixture
def list_odd(roll_call: RollCall) -> ListOdd:
    """List the hand-written server that behaves as named. Keywords are those of `Limits`."""

    def list_tools(
        behaviour: str, *args: str, env: dict[str, str] | None = None, **limits: float
    ) -> ServerListing:
        return upstream.list_tools(
            odd_connection(behaviour, *args, env={"ROLL_CALL": roll_call.port, **(env or {})}),
            limits=Limits(**limits),  # type: ignore[arg-type]
            rules=AT_HOME,
        )

    return list_tools


def odd_connection(behaviour: str, *args: str, env: dict[str, str] | None = None) -> Connection:
    return Connection(
        Transport.STDIO,
        command=sys.executable,
        args=("-I", "-S", str(SERVERS / "odd_server.py"), behaviour, *args),
        env=env or {},
    )


def sdk_connection() -> Connection:
    return Connection(Transport.STDIO, command=sys.executable, args=(str(SERVERS / "sdk_server.py"), "stdio"))


def list_with_sdk(server: Any) -> list[dict[str, Any]]:
    """What the SDK's own client lists, in wire form. Takes all that the client takes."""

    async def ask() -> list[dict[str, Any]]:
        async with Client(server, cache=None) as client:
            tools = (await client.list_tools()).tools
        return [tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in tools]

    return asyncio.run(ask())


@contextmanager
def run_sdk_server(transport: str) -> Iterator[int]:
    """Run the SDK's server over HTTP; gives its port."""
    command = [sys.executable, str(SERVERS / "sdk_server.py"), transport]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr
            told = next(filter(None, (re.search(r"127\.0\.0\.1:(\d+)", line) for line in process.stderr)))
            yield int(told[1])
        finally:
            process.kill()


@pytest.fixture(scope="session")
def http_port() -> Iterator[int]:
    with run_sdk_server("http") as port:
        yield port


@pytest.fixture(scope="session")
def sse_port() -> Iterator[int]:
    with run_sdk_server("sse") as port:
        yield port
