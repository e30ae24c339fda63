"""Celery as it is set up: what a task may take, where it waits, and what a broker does with its message."""

from typing import Any

import pytest
from django.conf import settings

from catalog import tasks
from catalog.models.jobs import JobKind
from catalog.services.jobs import LEASE, LONGEST_ATTEMPT
from sessions import tasks as session_tasks
from toolsearch_site import tasks as site_tasks
from toolsearch_site.celery import app

OWN = [
    task
    for module in (tasks, session_tasks, site_tasks)
    for task in vars(module).values()
    if hasattr(task, "apply_async") and hasattr(task, "name")
]


def test_there_are_tasks_to_look_at() -> None:
    assert {"catalog.run_job", "catalog.sweep_jobs", "sessions.expire_sessions"} <= {
        task.name for task in OWN
    }


@pytest.mark.parametrize("task", OWN, ids=lambda task: task.name)
def test_task_is_acknowledged_late_has_a_limit_and_keeps_no_result(task: Any) -> None:
    assert app.conf.task_acks_late
    assert app.conf.task_reject_on_worker_lost
    assert 0 < task.time_limit <= settings.LONGEST_TASK_SECONDS
    assert task.ignore_result


def test_message_comes_back_only_when_no_task_can_still_run() -> None:
    assert settings.VISIBILITY_TIMEOUT_SECONDS > 2 * settings.LONGEST_TASK_SECONDS


def test_row_is_given_up_no_later_than_the_task() -> None:
    assert LEASE < LONGEST_ATTEMPT
    assert LONGEST_ATTEMPT.total_seconds() <= settings.LONGEST_TASK_SECONDS


def test_job_is_told_to_end_before_it_is_ended() -> None:
    assert 0 < tasks.run_job.soft_time_limit < tasks.run_job.time_limit


def test_worker_takes_one_message_at_a_time_and_results_expire() -> None:
    assert app.conf.worker_prefetch_multiplier == 1
    assert app.conf.result_expires == 3600
    assert app.conf.accept_content == ["json"]


def test_what_takes_long_waits_in_a_queue_of_its_own() -> None:
    queued = {kind: tasks.QUEUES.get(kind.value, "celery") for kind in JobKind}
    long = {kind for kind, queue in queued.items() if queue == settings.REFRESH_QUEUE}
    assert long == {JobKind.REFRESH_SERVER, JobKind.TEST_SERVER, JobKind.ENCODE_TOOLS}
    assert {queue for kind, queue in queued.items() if kind not in long} == {"celery"}
    assert {queue.name for queue in app.conf.task_queues} == {"celery", settings.REFRESH_QUEUE}


def test_schedule_names_tasks_that_exist_and_drops_what_is_late() -> None:
    names = {task.name for task in OWN}
    for entry in app.conf.beat_schedule.values():
        assert entry["task"] in names
        assert entry["options"]["expires"] > 0
    assert app.conf.beat_scheduler == "toolsearch_site.cluster.scheduler:SoleScheduler"
