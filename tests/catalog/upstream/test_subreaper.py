"""Nothing a server started outlives the listing, even when we are killed in the middle of it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.catalog.upstream.conftest import SERVERS, RollCall

ROOT = Path(__file__).parents[3]
LISTER = """
import sys

from catalog import upstream
from catalog.domain.choices import Transport
from catalog.domain.connection import Connection, Limits, Rules

server, behaviour, port, timeout_seconds = sys.argv[1:]
upstream.list_tools(
    Connection(
        Transport.STDIO,
        command=sys.executable,
        args=("-I", "-S", server, behaviour),
        env={"ROLL_CALL": port},
    ),
    limits=Limits(connect_timeout_seconds=float(timeout_seconds)),
    rules=Rules(),
)
"""


def lister_command(behaviour: str, roll_call: RollCall, *, timeout_seconds: float = 30) -> list[str]:
    server = str(SERVERS / "odd_server.py")
    return [sys.executable, "-c", LISTER, server, behaviour, roll_call.port, str(timeout_seconds)]


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.slow
def test_when_we_are_killed_the_server_and_its_children_die_too(roll_call: RollCall) -> None:
    with subprocess.Popen(lister_command("clings_to_life", roll_call), cwd=ROOT) as lister:
        pids = roll_call.hear(2)
        assert all(Path(f"/proc/{pid}").exists() for pid in pids)
        lister.kill()
    roll_call.assert_all_dead()


def test_a_grandchild_in_a_session_of_its_own_ends_with_the_listing(roll_call: RollCall) -> None:
    command = lister_command("clings_to_life", roll_call, timeout_seconds=2)
    lister = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "did not answer MCP's greeting within 2 s" in lister.stderr
    assert len(roll_call.hear(2)) == 2
    roll_call.assert_all_dead()


def test_a_keeper_that_is_told_to_end_still_keeps(roll_call: RollCall) -> None:
    with subprocess.Popen(lister_command("clings_to_life", roll_call), cwd=ROOT) as lister:
        server, _ = sorted(roll_call.hear(2))
        os.kill(parent_of(server), signal.SIGTERM)
        lister.kill()
    roll_call.assert_all_dead()


def test_when_the_keeper_is_killed_the_server_dies(roll_call: RollCall) -> None:
    command = lister_command("hangs_on_connect", roll_call, timeout_seconds=2)
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL):
        (server,) = roll_call.hear(1)
        os.kill(parent_of(server), signal.SIGKILL)
        roll_call.assert_all_dead()
