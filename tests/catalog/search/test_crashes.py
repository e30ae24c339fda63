"""Whatever dies at whatever moment, a usable index stays, and readers notice nothing."""

import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from catalog.search import generations, index
from tests.catalog.search.crashing import SIZE, make_tools
from tests.catalog.search.samples import names, search

Process = subprocess.Popen[str]

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    index.build(tmp_path / "index", make_tools(0), None)
    return tmp_path / "index"


@contextmanager
def running(role: str, folder: Path) -> Iterator[Process]:
    command = [sys.executable, "-m", "tests.catalog.search.crashing", role, str(folder)]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def read_line(process: Process) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def kill_soon(process: Process, moment: random.Random) -> None:
    """Kill -9 at an arbitrary moment of the work."""
    try:
        process.wait(moment.uniform(0.001, 0.08))
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL


@pytest.mark.parametrize("role", ["build_for_ever", "update_for_ever"])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
def test_a_killed_writer_leaves_a_usable_index(folder: Path, role: str, seed: int) -> None:
    with running(role, folder) as writer:
        finished = int(read_line(writer))
        kill_soon(writer, random.Random(seed))
    compiled = generations.open_current(folder)[1]
    assert len(compiled) == SIZE
    (description,) = set(compiled.descriptions)
    assert int(description.removeprefix("common version")) >= finished
    index.update(folder, make_tools(999), [], None)
    index.build(folder, make_tools(1000), None)
    mended = generations.open_current(folder)[1]
    assert len(names(search("version1000", mended, max_results=50))) == SIZE
    assert len(list(folder.iterdir())) <= 5


@pytest.mark.slow
def test_readers_notice_neither_updates_nor_a_killed_writer(folder: Path) -> None:
    with running("read_until_told", folder) as one, running("read_until_told", folder) as two:
        readers = (one, two)
        assert [read_line(reader) for reader in readers] == ["reading\n"] * 2
        with running("update_for_ever", folder) as writer:
            read_line(writer)
            kill_soon(writer, random.Random(7))
        with running("update_often", folder) as writer:
            assert writer.wait() == 0
        (folder.parent / "stop").touch()
        for reader in readers:
            output, errors = reader.communicate()
            assert (reader.returncode, errors) == (0, "")
            assert int(output) > 10
    with generations.writing(folder, timeout_seconds=0):
        pass
