"""An instance whose disk is full: polls go on, writes are refused by name, and it heals with the space."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.instance import Instance, children_of, running_instance, wait_for
from tests.harness.prepared import prepared
from tests.harness.rest import RestClient

pytestmark = pytest.mark.slow

DISK_MEGABYTES = 96


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small one of its own, in memory."""
    folder = tmp_path / "disk"
    folder.mkdir()
    size = f"size={DISK_MEGABYTES}m"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk: Path) -> None:
    """To the last byte, whatever is written meanwhile."""
    with (disk / "filler").open("ab", buffering=0) as filler:
        block = bytes(1024 * 1024)
        while block:
            try:
                filler.write(block)
            except OSError:
                block = block[: len(block) // 2]


def test_polls_go_on_writes_are_refused_by_name_and_nothing_is_lost(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Embedded, whatever the run is on: the disk under test is the database's too."""
    for name in ("DATABASE_URL", "CELERY_BROKER_URL"):
        monkeypatch.delenv(name, raising=False)
    data = disk / "data"
    data.mkdir()
    with running_instance(prepared(data), "--no-demo") as instance:
        instance.wait_until_healthy()
        agent = RestClient(instance.port, instance.manage("create_key", "agent").stdout.strip())
        kept = [agent.post("/sessions", {}, status=201)["id"] for _ in range(5)]
        path = f"/sessions/{kept[0]}/tools"
        tag = agent.call("GET", path).headers["ETag"]
        before = children_of(instance.pid_of("web"))
        assert before
        kept += refuse_writes(instance, agent, disk)
        wait_for(lambda: instance.health().get("disk") == "full", within_seconds=20, about=instance)
        assert instance.health()["status"] == "degraded"
        for _ in range(200):
            assert agent.call("GET", path, If_None_Match=tag).status == 304
            assert agent.call("GET", path).status == 200
        assert children_of(instance.pid_of("web")) == before
        (disk / "filler").unlink()
        wait_for(lambda: instance.health().get("disk") == "ok", within_seconds=20, about=instance)
        wait_for(lambda: agent.call("POST", "/sessions", {}).status == 201, within_seconds=30, about=instance)
        for session in kept:
            agent.get(f"/sessions/{session}")
    assert "Bus error" not in instance.output


def refuse_writes(instance: Instance, agent: RestClient, disk: Path) -> list[str]:
    """Fill the disk and write until that is refused for it. Returns what was acknowledged until then."""
    made: list[str] = []

    def is_refused() -> bool:
        fill(disk)
        answer = agent.call("POST", "/sessions", {})
        if answer.status == 201:
            made.append(answer.json()["id"])
            return False
        assert answer.status == 503, answer.content
        return "disk is full" in answer.json()["detail"].lower()

    wait_for(is_refused, within_seconds=60, about=instance)
    return made
