"""Waking the workers: a broker that is away costs a wake-up, never a job or an answer."""

from typing import Any

import pytest
from django.db import OperationalError as DatabaseAway
from django.test import TestCase
from django.utils import timezone
from kombu.exceptions import OperationalError as BrokerAway

from catalog import tasks
from catalog.models import Job
from catalog.models.jobs import JobKind
from catalog.services import jobs

pytestmark = pytest.mark.django_db


class Broker:
    """Takes so many messages, then is gone."""

    def __init__(self, takes: int) -> None:
        self.takes = takes
        self.sent: list[int] = []

    def __call__(self, arguments: tuple[int], **_: Any) -> None:
        if len(self.sent) >= self.takes:
            raise BrokerAway("connection refused")
        self.sent.append(arguments[0])


def use(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Broker:
    monkeypatch.setattr(tasks.run_job, "apply_async", broker)
    return broker


def test_what_the_broker_did_not_take_is_sent_by_the_next_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = [jobs.request_job(kind=JobKind.REFRESH_SERVER, subject=subject).pk for subject in (1, 2, 3)]
    first = use(Broker(takes=1), monkeypatch)
    tasks.wake_workers()
    second = use(Broker(takes=9), monkeypatch)
    tasks.wake_workers()
    assert sorted(first.sent + second.sent) == wanted
    assert len(first.sent) == 1


def test_write_is_confirmed_and_its_job_kept_while_the_broker_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use(Broker(takes=0), monkeypatch)
    with TestCase.captureOnCommitCallbacks(execute=True):
        jobs.request_job(kind=JobKind.DECIDE)
        tasks.wake_workers_on_commit()
    job = Job.objects.get()
    assert job.woken_at is None
    assert jobs.take_wakeable(now=timezone.now()) == [(job.pk, "decide")]


def test_committed_write_is_not_reported_as_failed_when_the_database_goes_away_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(**_: Any) -> list[tuple[int, str]]:
        raise DatabaseAway("server closed the connection")

    monkeypatch.setattr(jobs, "take_wakeable", fail)
    with TestCase.captureOnCommitCallbacks(execute=True) as callbacks:
        tasks.wake_workers_on_commit()
    assert len(callbacks) == 1
