"""Debounce: costly work runs once for a burst of requests."""

import pytest

from catalog.models import Job
from catalog.services import reindex
from catalog.services.reindex import Debounce
from tests.harness.clocks import set_clock
from tests.harness.rows import make_tool


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_first_work_need_not_wait() -> None:
    assert Debounce(0.5, clock=Clock()).seconds_left() == 0


def test_rest_counts_from_the_end_of_the_work() -> None:
    clock = Clock()
    debounce = Debounce(0.5, clock=clock)
    debounce.restart()
    clock.now += 0.25
    assert debounce.seconds_left() == 0.25
    clock.now += 7
    assert debounce.seconds_left() == 0


@pytest.mark.django_db
def test_update_that_follows_at_once_waits_for_more_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    waited: list[float] = []
    monkeypatch.setattr(reindex, "_debounce", Debounce(0.5, clock=clock))
    set_clock(monkeypatch, reindex, sleep=waited.append)
    make_tool(name="alpha")
    reindex.run_update(Job())
    reindex.run_update(Job())
    clock.now += 1
    reindex.run_update(Job())
    assert waited == [0, 0.5, 0]
    assert not reindex.is_behind()
