"""A server cannot fill our memory, whatever it sends."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.catalog.upstream.conftest import SERVERS
from tests.catalog.upstream.web import run_web

ROOT = Path(__file__).parents[3]
LISTER = """
import contextlib, resource, sys
from catalog import upstream
from catalog.domain.addresses import AddressRules
from catalog.domain.choices import Transport
from catalog.domain.connection import Connection, Limits, Rules, UpstreamFailure

server, *attempts = sys.argv[1:]
for attempt in attempts:
    if attempt.startswith("http"):
        connection = Connection(Transport.HTTP, url=attempt)
    else:
        connection = Connection(Transport.STDIO, command=sys.executable, args=("-I", "-S", server, attempt))
    with contextlib.suppress(UpstreamFailure):
        rules = Rules(addresses=AddressRules(allow_private=True))
        upstream.list_tools(connection, limits=Limits(), rules=rules)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
MOST_GROWTH_KB = 100_000


def grow(*attempts: str) -> int:
    """By how many kB a process grows that lists a good server, then these."""
    command = [sys.executable, "-c", LISTER, str(SERVERS / "odd_server.py"), "is_fine", *attempts]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    before_kb, *_, after_kb = map(int, printed.split())
    return after_kb - before_kb


@pytest.mark.slow
@pytest.mark.parametrize("behaviour", ["describes_at_length", "never_ends_its_line", "floods_stderr"])
def test_a_flood_costs_little_memory(behaviour: str) -> None:
    assert grow(behaviour) < MOST_GROWTH_KB


@pytest.mark.slow
@pytest.mark.parametrize("behaviour", ["floods_requests", "floods_notifications"])
def test_a_flood_of_messages_costs_little_memory_each_time(behaviour: str) -> None:
    assert grow(behaviour, behaviour, behaviour) < MOST_GROWTH_KB


@pytest.mark.slow
def test_a_flood_of_requests_over_http_costs_little_memory_each_time() -> None:
    with run_web() as web:
        url = f"http://127.0.0.1:{web.port}/endless_requests"
        assert grow(url, url, url) < MOST_GROWTH_KB
