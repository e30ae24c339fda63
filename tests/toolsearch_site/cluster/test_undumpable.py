"""No process that holds a secret can be read by another one of the same user, such as a stdio server."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.instance import command_of, processes_of
from tests.harness.workers import find_free_port
from toolsearch_site.cluster.programs import UNDUMPABLE

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has the switch")

ROOT = Path(__file__).parents[3]
WAIT = "import sys; print('ready', flush=True); sys.stdin.read()"
# Becomes another program without what lets root read every process: PR_CAPBSET_DROP of CAP_SYS_PTRACE,
# CAP_SYS_ADMIN and CAP_PERFMON. Both sides need it, for who has less may not read who has more.
AS_A_USER = (
    sys.executable,
    "-c",
    "import ctypes, os, sys; prctl = ctypes.CDLL(None).prctl;"
    " [prctl(24, one, 0, 0, 0) for one in (19, 21, 38)]; os.execv(sys.argv[1], sys.argv[1:])",
)


def can_read(pid: int) -> bool:
    command = (*AS_A_USER, "/bin/cat", f"/proc/{pid}/environ")
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def start(tmp_path: Path, *command: str) -> "subprocess.Popen[str]":
    """With the product's settings on files of its own, whatever this run of the tests uses."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "PYTHONPATH") if name in os.environ}
    return subprocess.Popen(
        (*AS_A_USER, sys.executable, *command),
        cwd=ROOT,
        env={**kept, "TOOLSEARCH_DATA": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def is_readable(tmp_path: Path, *command: str) -> bool:
    """`command` is a Python program that ends with WAIT."""
    process = start(tmp_path, *command)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return can_read(process.pid)
    finally:
        process.communicate()


def test_an_ordinary_process_can_be_read(tmp_path: Path) -> None:
    assert is_readable(tmp_path, "-c", WAIT)


@pytest.mark.slow
@pytest.mark.parametrize(
    "module", ["toolsearch_site.celery", "toolsearch_site.wsgi", "toolsearch_site.gateway"]
)
def test_our_programs_cannot(tmp_path: Path, module: str) -> None:
    assert not is_readable(tmp_path, "-c", f"import {module}; {WAIT}")


def test_commands_cannot(tmp_path: Path) -> None:
    assert not is_readable(tmp_path, "manage.py", "shell", "--no-imports", "-c", WAIT)


def test_a_program_of_others_cannot_where_we_start_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "waiting.py").write_text(WAIT)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert is_readable(tmp_path, "-m", "waiting")
    assert not is_readable(tmp_path, *UNDUMPABLE[1:], "waiting")


@pytest.mark.slow
def test_no_process_of_a_running_instance_can(tmp_path: Path) -> None:
    ports = ("--port", str(find_free_port()), "--gateway-port", str(find_free_port()))
    up = start(tmp_path, "manage.py", "up", "--no-demo", *ports)
    try:
        assert up.stdout is not None
        assert any("MCP gateway at" in line for line in up.stdout)
        processes = [int(line.partition(":")[0]) for line in processes_of(tmp_path)]
        assert len(processes) >= 8
        assert [command_of(pid) for pid in processes if can_read(pid)] == []
    finally:
        up.send_signal(signal.SIGTERM)
        up.communicate()
