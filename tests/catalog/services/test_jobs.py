"""A job is a row: claimed by one worker at a time, given up by a dead one, run until it is done."""

import threading
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.db import IntegrityError, OperationalError, transaction
from django.utils import timezone

from catalog.models import Job
from catalog.models.jobs import JobKind, JobState
from catalog.services import jobs
from tests.harness.instance import wait_for

pytestmark = pytest.mark.django_db

REFRESH = JobKind.REFRESH_SERVER


def run(job: Job, handler: Callable[[Job], None], holder: str = "worker-a") -> bool:
    return jobs.run_job(job_id=job.pk, holder=holder, handlers={REFRESH: handler})


def ends(job: Job) -> Job:
    job.refresh_from_db()
    return job


def woken(now: datetime) -> list[int]:
    return [pk for pk, _ in jobs.take_wakeable(now=now)]


def abandon(job: Job) -> None:
    """What a worker killed with -9 leaves: the hold, not renewed any more."""
    Job.objects.filter(pk=job.pk).update(held_until=timezone.now() - timedelta(seconds=1))


class TestRequest:
    def test_burst_is_one_job(self) -> None:
        requested = {jobs.request_job(kind=REFRESH, subject=7).pk for _ in range(5)}
        assert len(requested) == 1

    def test_asking_again_keeps_the_place_among_those_that_wait(self) -> None:
        first, second = (jobs.request_job(kind=REFRESH, subject=subject) for subject in (7, 8))
        assert jobs.request_job(kind=REFRESH, subject=7) == first
        assert woken(timezone.now()) == [first.pk, second.pk]

    def test_burst_is_one_wake_up_while_that_is_on_its_way(self) -> None:
        first = jobs.request_job(kind=REFRESH, subject=7)
        assert woken(timezone.now()) == [first.pk]
        assert jobs.request_job(kind=REFRESH, subject=7) == first
        assert woken(timezone.now()) == []
        Job.objects.update(woken_at=timezone.now() - jobs.WAKE_UP_TRAVELS)  # and no worker has come
        assert jobs.request_job(kind=REFRESH, subject=7) == first
        assert woken(timezone.now()) == [first.pk]

    def test_job_that_waits_for_another_attempt_is_woken_at_once(self) -> None:
        job = jobs.request_job(kind=REFRESH, subject=7)
        assert woken(timezone.now()) == [job.pk]
        Job.objects.update(run_after=timezone.now() + timedelta(minutes=1))
        jobs.request_job(kind=REFRESH, subject=7)
        assert woken(timezone.now()) == [job.pk]

    def test_request_while_one_runs_waits_for_its_own_turn(self) -> None:
        first = jobs.request_job(kind=REFRESH, subject=7)
        assert jobs.claim_job(job_id=first.pk, holder="worker-a")
        second = jobs.request_job(kind=REFRESH, subject=7)
        assert second.pk != first.pk
        assert jobs.claim_job(job_id=second.pk, holder="worker-b") is None
        assert ends(second).state == JobState.WAITING

    def test_request_brings_a_waiting_retry_forward_and_a_sweep_does_not(self) -> None:
        job = jobs.request_job(kind=REFRESH, subject=7)
        Job.objects.filter(pk=job.pk).update(run_after=timezone.now() + timedelta(hours=1))
        jobs.ensure_job(kind=REFRESH, subject=7)
        assert Job.objects.get() == job
        assert jobs.claim_job(job_id=job.pk, holder="worker-a") is None
        assert jobs.request_job(kind=REFRESH, subject=7) == job
        assert jobs.claim_job(job_id=job.pk, holder="worker-a") is not None


class TestClaim:
    def test_second_worker_does_nothing(self) -> None:
        job = jobs.request_job(kind=REFRESH)
        assert jobs.claim_job(job_id=job.pk, holder="worker-a") is not None
        assert jobs.claim_job(job_id=job.pk, holder="worker-b") is None

    def test_not_before_its_time(self) -> None:
        job = jobs.request_job(kind=REFRESH)
        Job.objects.update(run_after=timezone.now() + timedelta(minutes=1))
        assert jobs.claim_job(job_id=job.pk, holder="worker-a") is None

    def test_abandoned_job_is_taken_over(self) -> None:
        job = jobs.request_job(kind=REFRESH)
        jobs.claim_job(job_id=job.pk, holder="worker-a")
        abandon(job)
        taken = jobs.claim_job(job_id=job.pk, holder="worker-b")
        assert taken is not None
        assert (taken.held_by, taken.attempts) == ("worker-b", 2)

    def test_database_refuses_a_running_job_that_nobody_holds(self) -> None:
        job = jobs.request_job(kind=REFRESH)
        with pytest.raises(IntegrityError), transaction.atomic():
            Job.objects.filter(pk=job.pk).update(state=JobState.RUNNING)


class TestRun:
    def test_done_once(self) -> None:
        job, seen = jobs.request_job(kind=REFRESH, subject=3), []
        assert run(job, lambda held: seen.append(held.subject))
        assert not run(job, lambda held: seen.append(held.subject))
        assert seen == [3]
        assert ends(job).state == JobState.DONE
        assert job.finished_at is not None

    def test_failure_waits_and_says_why(self) -> None:
        job = jobs.request_job(kind=REFRESH)
        run(job, _fail)
        assert (ends(job).state, job.error) == (JobState.WAITING, "RuntimeError: no luck")
        assert job.run_after > timezone.now()

    def test_attempts_are_capped(self) -> None:
        job = jobs.request_job(kind=REFRESH)
        for _ in range(job.max_attempts):
            Job.objects.update(run_after=timezone.now())
            run(job, _fail)
        assert ends(job).state == JobState.FAILED
        assert not run(job, _fail)

    def test_failure_makes_way_for_a_newer_request(self) -> None:
        job = jobs.request_job(kind=REFRESH, subject=1)

        def fail_after_a_new_request(_: Job) -> None:
            jobs.request_job(kind=REFRESH, subject=1)
            raise RuntimeError("no luck")

        run(job, fail_after_a_new_request)
        assert ends(job).state == JobState.FAILED
        assert Job.objects.open().count() == 1

    def test_late_worker_cannot_end_its_successors_attempt(self) -> None:
        job = jobs.request_job(kind=REFRESH)

        def be_overtaken(_: Job) -> None:
            abandon(job)
            assert jobs.claim_job(job_id=job.pk, holder="worker-b")

        run(job, be_overtaken)
        assert (ends(job).state, job.held_by) == (JobState.RUNNING, "worker-b")

    def test_late_worker_cannot_store_its_result(self) -> None:
        job = jobs.request_job(kind=REFRESH)
        held = jobs.claim_job(job_id=job.pk, holder="worker-a")
        assert held is not None
        abandon(job)
        jobs.claim_job(job_id=job.pk, holder="worker-b")
        with pytest.raises(jobs.LostHold), transaction.atomic():
            jobs.confirm_held(held)

    def test_hold_is_renewed_while_the_job_runs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(jobs, "RENEW_EVERY_SECONDS", 0.0)
        job = jobs.request_job(kind=REFRESH)
        held = jobs.claim_job(job_id=job.pk, holder="worker-a")
        assert held is not None
        renewals: list[object] = []

        class Held:
            def update(self, **values: object) -> int:
                renewals.append(values["held_until"])
                return len(renewals) < 3

        monkeypatch.setattr(jobs, "_held", lambda job: Held())
        with jobs.keep_held(held):
            wait_for(lambda: len(renewals) == 3, within_seconds=10)

    def test_renewing_keeps_no_connection_from_the_jobs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Eight refreshes that each take long would need sixteen."""
        monkeypatch.setattr(jobs, "RENEW_EVERY_SECONDS", 0.0)
        steps: list[str] = []

        class Connection:
            def close(self) -> None:
                steps.append("closed")

        def renew(job: Job) -> bool:
            steps.append("renewed")
            return len(steps) < 4

        monkeypatch.setattr(jobs, "_renew", renew)
        monkeypatch.setattr(jobs, "connection", Connection())
        with jobs.keep_held(Job()):
            wait_for(lambda: len(steps) == 6, within_seconds=10)
        assert steps == ["renewed", "closed"] * 3

    def test_stuck_attempt_loses_its_hold(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(jobs, "RENEW_EVERY_SECONDS", 0.0)
        monkeypatch.setattr(jobs, "LONGEST_ATTEMPT", timedelta(0))
        renewals: list[Job] = []
        monkeypatch.setattr(jobs, "_renew", renewals.append)
        job = jobs.claim_job(job_id=jobs.request_job(kind=REFRESH).pk, holder="worker-a")
        assert job is not None
        name = f"hold-job-{job.pk}"
        with jobs.keep_held(job):
            wait_for(lambda: name not in {thread.name for thread in threading.enumerate()}, within_seconds=10)
        assert not renewals

    def test_renewal_that_fails_once_is_tried_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        job = jobs.request_job(kind=REFRESH)
        held = jobs.claim_job(job_id=job.pk, holder="worker-a")
        assert held is not None

        class Away:
            def update(self, **values: object) -> int:
                raise OperationalError("the database is away")

        with monkeypatch.context() as patch:
            patch.setattr(jobs, "_held", lambda job: Away())
            assert jobs._renew(held)
        assert jobs._renew(held)


class TestSweep:
    def test_wakes_each_job_once_until_it_is_overdue(self) -> None:
        job, now = jobs.request_job(kind=REFRESH), timezone.now()
        assert woken(now) == [job.pk]
        assert woken(now) == []
        assert woken(now + jobs.REWAKE_AFTER * 2) == [job.pk]

    def test_wakes_what_was_woken_in_the_future(self) -> None:
        """As after a clock was set back."""
        job, now = jobs.request_job(kind=REFRESH), timezone.now()
        Job.objects.update(woken_at=now + timedelta(hours=1))
        assert woken(now) == [job.pk]
        assert woken(now) == []

    def test_wakes_what_waits_for_a_running_job_as_soon_as_that_has_ended(self) -> None:
        first = jobs.request_job(kind=REFRESH, subject=7)
        waiting: list[Job] = []

        def ask_again(_: Job) -> None:
            waiting.append(jobs.request_job(kind=REFRESH, subject=7))
            other = jobs.request_job(kind=REFRESH, subject=8)
            assert woken(timezone.now()) == [other.pk]

        assert run(first, ask_again)
        assert woken(timezone.now()) == [waiting[0].pk]

    def test_wakes_again_soon_what_came_too_early_to_be_claimed(self) -> None:
        first = jobs.request_job(kind=REFRESH, subject=7)
        jobs.claim_job(job_id=first.pk, holder="worker-a")
        second = jobs.request_job(kind=REFRESH, subject=7)
        Job.objects.filter(pk=second.pk).update(woken_at=timezone.now())
        assert jobs.claim_job(job_id=second.pk, holder="worker-b") is None
        Job.objects.filter(pk=first.pk).update(state=JobState.DONE, held_by="", held_until=None)
        assert woken(timezone.now()) == [second.pk]

    def test_wakes_what_a_dead_worker_held(self) -> None:
        job, now = jobs.request_job(kind=REFRESH), timezone.now()
        jobs.take_wakeable(now=now)
        jobs.claim_job(job_id=job.pk, holder="worker-a")
        assert woken(now + jobs.REWAKE_AFTER * 1.1) == []
        assert woken(now + jobs.LEASE * 1.1) == [job.pk]

    def test_gives_up_a_job_that_kills_its_workers(self) -> None:
        job = jobs.request_job(kind=REFRESH)
        for _ in range(job.max_attempts):
            jobs.claim_job(job_id=job.pk, holder="worker-a")
            abandon(job)
        assert woken(timezone.now()) == []
        assert jobs.give_up_exhausted(now=timezone.now()) == 1
        assert ends(job).state == JobState.FAILED

    def test_prunes_what_ended_long_ago(self) -> None:
        run(jobs.request_job(kind=REFRESH, subject=1), lambda _: None)
        jobs.request_job(kind=REFRESH, subject=2)
        assert jobs.prune_jobs(before=timezone.now() - timedelta(days=1)) == 0
        assert jobs.prune_jobs(before=timezone.now() + timedelta(days=1)) == 1
        assert Job.objects.get().subject == 2


def _fail(_: Job) -> None:
    raise RuntimeError("no luck")
