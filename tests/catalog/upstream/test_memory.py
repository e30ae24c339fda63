"""A server cannot fill our memory, whatever it sends."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.catalog.upstream.conftest import SERVERS

ROOT = Path(__file__).parents[3]
LISTER = """
import contextlib, resource, sys
from catalog import upstream
from catalog.domain.choices import Transport
from catalog.domain.connection import Connection, Limits, Rules, UpstreamFailure

for behaviour in ("is_fine", sys.argv[2]):
    with contextlib.suppress(UpstreamFailure):
        upstream.list_tools(
            Connection(Transport.STDIO, command=sys.executable, args=("-I", "-S", sys.argv[1], behaviour)),
            limits=Limits(),
            rules=Rules(),
        )
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.parametrize("behaviour", ["describes_at_length", "never_ends_its_line", "floods_stderr"])
def test_a_flood_costs_little_memory(behaviour: str) -> None:
    command = [sys.executable, "-c", LISTER, str(SERVERS / "odd_server.py"), behaviour]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    before_kb, after_kb = map(int, printed.split())
    assert after_kb - before_kb < 100_000
