"""Counters are summed over processes, and a full disk costs no request."""

import json
import os
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Counter, Histogram

from toolsearch_site.monitoring.shared_counts import SharedCounts


class Counts:
    def __init__(self, folder: Path) -> None:
        registry = CollectorRegistry()
        self.asked = Counter("asked", "Asked.", ["kind"], registry=registry)
        self.took = Histogram("took", "Took.", ["kind"], buckets=(1.0, 10.0), registry=registry)
        self.shared = SharedCounts(folder, (self.asked, self.took))

    def read(self) -> dict[str, float]:
        return {
            sample.name + "".join(f"|{value}" for value in sample.labels.values()): sample.value
            for family in self.shared.collect()
            for sample in family.samples
        }


@pytest.fixture
def counts(tmp_path: Path) -> Counts:
    return Counts(tmp_path / "metrics")


def write_as(pid: int, counts: Counts, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(os, "getpid", lambda: pid)
        counts.shared.write()


def test_sums_of_all_processes_are_told(
    tmp_path: Path, counts: Counts, monkeypatch: pytest.MonkeyPatch
) -> None:
    for pid, kind in ((2, "poll"), (3, "page")):
        other = Counts(tmp_path / "metrics")
        other.asked.labels(kind).inc(10)
        other.took.labels(kind).observe(5)
        write_as(pid, other, monkeypatch)
    counts.asked.labels("poll").inc(1)
    counts.took.labels("poll").observe(0.5)
    counts.shared.write()  # its own file is not counted twice
    told = counts.read()
    assert (told["asked_total|poll"], told["asked_total|page"]) == (11, 10)
    assert (told["took_bucket|poll|1.0"], told["took_bucket|poll|10.0"]) == (1, 2)
    assert (told["took_sum|poll"], told["took_count|poll"]) == (5.5, 2)


def test_file_that_was_cut_off_counts_as_none(tmp_path: Path, counts: Counts) -> None:
    counts.asked.labels("poll").inc()
    counts.shared.write()
    (tmp_path / "metrics" / "2.json").write_text('[["asked_total", [["ki')
    assert counts.read()["asked_total|poll"] == 1


def test_disk_that_takes_nothing_leaves_the_last_file_and_the_counts(
    tmp_path: Path, counts: Counts, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts.asked.labels("poll").inc()
    counts.shared.write()

    def refuse(path: Path, text: str) -> int:
        path.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", refuse)
    counts.asked.labels("poll").inc()
    with pytest.raises(OSError, match="No space"):
        counts.shared.write()
    assert counts.read()["asked_total|poll"] == 2
    [kept] = (tmp_path / "metrics").iterdir()
    assert json.loads(kept.read_bytes()) == [["asked_total", [["kind", "poll"]], 1.0]]
