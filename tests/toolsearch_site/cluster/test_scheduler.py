"""One scheduler at a time: a second one waits, and takes over from one that is gone."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from celery.beat import Scheduler
from django.db import OperationalError
from django.utils import timezone

from tests.harness.clocks import set_clock
from toolsearch_site.celery import app
from toolsearch_site.cluster import leases
from toolsearch_site.cluster import scheduler as scheduler_module
from toolsearch_site.cluster.scheduler import LENGTH, SoleScheduler
from toolsearch_site.models import Lease

pytestmark = pytest.mark.django_db


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Who sent what was due, in order."""
    sent: list[str] = []

    def tick(scheduler: Any, *_: Any, **__: Any) -> float:
        sent.append(scheduler.holder)
        return 60.0

    monkeypatch.setattr(Scheduler, "tick", tick)
    # Tests share one connection; a scheduler closes its own after every look.
    monkeypatch.setattr("toolsearch_site.cluster.scheduler.connection.close", lambda: None)
    return sent


def end_lease() -> None:
    Lease.objects.update(held_until=timezone.now() - timedelta(seconds=1))


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the monotonic clock says."""
    told = [0.0]
    set_clock(monkeypatch, leases, monotonic=lambda: told[0])
    return told


def test_lease_that_nobody_renews_is_taken_whatever_its_end(
    ticks: list[str], seconds: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    """As after a clock was set back: its holder is gone, and its end is an hour away."""
    first, second = make_scheduler(), make_scheduler()
    first.tick()
    Lease.objects.update(held_until=timezone.now() + timedelta(hours=1))
    for seconds[0] in (0.0, 3.0, 6.0):
        second.tick()
    assert ticks == [first.holder]
    seconds[0] = 6.5
    second.tick()
    first.tick()
    assert ticks == [first.holder, second.holder]
    assert "nobody renews the lease" in caplog.text


def test_lease_of_a_clock_that_is_far_ahead_holds_while_it_is_renewed(
    ticks: list[str], seconds: list[float]
) -> None:
    first, second = make_scheduler(), make_scheduler()
    for turn in range(5):
        first.tick()
        Lease.objects.update(held_until=timezone.now() + LENGTH + timedelta(minutes=5))
        seconds[0] += 4.0
        second.tick()
        assert ticks == [first.holder] * (turn + 1)


def make_scheduler() -> SoleScheduler:
    return SoleScheduler(app=app, lazy=True)


def test_only_the_first_of_two_sends(ticks: list[str]) -> None:
    first, second = make_scheduler(), make_scheduler()
    for _ in range(3):
        first.tick()
        second.tick()
    assert ticks == [first.holder] * 3


def test_looks_again_before_its_lease_ends(ticks: list[str]) -> None:
    first, second = make_scheduler(), make_scheduler()
    assert first.tick() < LENGTH.total_seconds()
    assert second.tick() < LENGTH.total_seconds()


def test_second_takes_over_when_the_first_stops_renewing(ticks: list[str]) -> None:
    first, second = make_scheduler(), make_scheduler()
    first.tick()
    end_lease()
    second.tick()
    first.tick()  # back from a long sleep: it is not in charge any more
    assert ticks == [first.holder, second.holder]


def test_second_takes_over_at_once_when_the_first_ends_well(ticks: list[str]) -> None:
    first, second = make_scheduler(), make_scheduler()
    first.tick()
    first.close()
    second.tick()
    assert ticks == [first.holder, second.holder]


def test_one_that_never_held_takes_nothing_away_when_it_ends(ticks: list[str]) -> None:
    first, second = make_scheduler(), make_scheduler()
    first.tick()
    second.tick()
    second.close()
    assert Lease.objects.get().holder == first.holder


def test_sends_nothing_while_the_database_is_away(
    ticks: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    scheduler = make_scheduler()
    scheduler.tick()

    def fail(*_: Any, **__: Any) -> bool:
        raise OperationalError("the server is away")

    with monkeypatch.context() as away:
        away.setattr(leases, "acquire", fail)
        scheduler.tick()
    assert "could not be renewed" in caplog.text
    scheduler.tick()
    assert ticks == [scheduler.holder] * 2


class TestClockThatWasSetBack:
    """Celery says by the wall clock what is due: an hour back, nothing would be for an hour."""

    @pytest.fixture
    def clock(self, monkeypatch: pytest.MonkeyPatch) -> list[float]:
        """Seconds by the wall clock and by the one that is never set."""
        told = [1_800_000_000.0, 0.0]
        monkeypatch.setattr(app, "now", lambda: datetime.fromtimestamp(told[0], UTC))
        set_clock(monkeypatch, scheduler_module, monotonic=lambda: told[1])
        monkeypatch.setattr("toolsearch_site.cluster.scheduler.connection.close", lambda: None)
        return told

    @pytest.fixture
    def sent(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        names: list[str] = []
        monkeypatch.setattr(Scheduler, "apply_entry", lambda _self, entry, **_: names.append(entry.name))
        return names

    def pass_time(self, scheduler: SoleScheduler, clock: list[float], seconds: int) -> None:
        for _ in range(seconds):
            clock[0] += 1
            clock[1] += 1
            for _ in range(20):  # what is due together is sent in a tick each
                scheduler.tick()

    def test_what_is_scheduled_is_sent_again_within_its_interval(
        self, clock: list[float], sent: list[str], caplog: pytest.LogCaptureFixture
    ) -> None:
        scheduler = make_scheduler()
        scheduler.setup_schedule()
        interval = int(scheduler.schedule["sweep-jobs"].schedule.run_every.total_seconds())
        self.pass_time(scheduler, clock, interval + 2)
        assert "sweep-jobs" in sent
        sent.clear()
        clock[0] -= 3600
        self.pass_time(scheduler, clock, interval + 2)
        assert "sweep-jobs" in sent
        assert "set back by 3600 seconds" in caplog.text

    def test_clock_that_goes_ahead_or_is_a_little_off_begins_nothing_anew(
        self, clock: list[float], sent: list[str], caplog: pytest.LogCaptureFixture
    ) -> None:
        scheduler = make_scheduler()
        for change in (3600, -1):
            clock[0] += change
            self.pass_time(scheduler, clock, 2)
        assert "set back" not in caplog.text
