"""A connection test asks as a refresh would, within its time, and leaves nothing but its job's row."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from catalog.access.actors import COMMAND_LINE, Actor
from catalog.access.roles import Role
from catalog.domain.choices import Transport
from catalog.domain.connection import Connection, FailureCode, ServerListing, UpstreamFailure
from catalog.domain.dialects import ServerEntry
from catalog.domain.errors import Conflict, NotAllowed
from catalog.domain.limits import TEST_SECONDS
from catalog.models import Change, Job, RefreshRun, Server
from catalog.models.jobs import JobKind, JobState
from catalog.services import connection_tests, jobs

pytestmark = pytest.mark.django_db

CANARY = "canary-91c0de"
REMOTE = ServerEntry(
    name="web", transport=Transport.HTTP, url="https://mcp.test/", headers={"Authorization": CANARY}
)
LOCAL = ServerEntry(name="local", transport=Transport.STDIO, command="npx", args=("-y", "x"), cwd="/srv")


def request(entry: ServerEntry = REMOTE, *, caller: int = 1, actor: Actor = COMMAND_LINE) -> Job:
    return connection_tests.request_test(entry=entry, actor=actor, caller=caller)


def run(job: Job, list_tools: Callable[..., ServerListing]) -> Job:
    handlers = {JobKind.TEST_SERVER: lambda held: connection_tests.run_test(held, list_tools=list_tools)}
    jobs.run_job(job_id=job.pk, holder="worker", handlers=handlers)
    job.refresh_from_db()
    return job


def lists(connection: Connection, **_: Any) -> ServerListing:
    return ServerListing(tuple({"name": f"tool_{number}"} for number in range(300)))


def test_what_is_asked_is_what_was_given_and_the_result_names_the_tools() -> None:
    asked: list[Connection] = []

    def listen(connection: Connection, **limits: Any) -> ServerListing:
        asked.append(connection)
        assert limits["limits"].total_timeout_seconds < TEST_SECONDS
        return lists(connection)

    result = connection_tests.read_result(run(request(LOCAL), listen))
    assert asked == [Connection(Transport.STDIO, command="npx", args=("-y", "x"), cwd="/srv")]
    assert result is not None
    assert (result.ok, result.tools, len(result.names), result.names[0]) == (True, 300, 200, "tool_0")


def test_failure_is_told_as_a_refresh_would_with_the_field_that_mends_it() -> None:
    def refuse(connection: Connection, **_: Any) -> ServerListing:
        raise UpstreamFailure(FailureCode.UNAUTHORIZED, "The server refused the token (401)")

    result = connection_tests.read_result(run(request(), refuse))
    assert result is not None
    assert (result.ok, result.error, result.field) == (False, "The server refused the token (401)", "headers")


def test_nothing_but_the_row_is_stored_and_its_body_goes_when_it_ends() -> None:
    job = request()
    assert CANARY not in job.sealed
    assert job.sealed
    run(job, lists)
    assert (job.state, job.sealed) == (JobState.DONE, "")
    assert CANARY not in str(job.result)
    assert not [model for model in (Server, RefreshRun, Change) if model._default_manager.exists()]


def test_body_goes_also_where_the_worker_is_lost() -> None:
    job = request()
    jobs.claim_job(job_id=job.pk, holder="lost")
    Job.objects.update(held_until=timezone.now() - timedelta(seconds=1))
    jobs.give_up_exhausted(now=timezone.now())
    job.refresh_from_db()
    result = connection_tests.read_result(job)
    assert job.sealed == ""
    assert result is not None
    assert "could not be carried out" in result.error


def test_mistake_of_ours_is_told_without_its_text(caplog: pytest.LogCaptureFixture) -> None:
    def break_down(connection: Connection, **_: Any) -> ServerListing:
        raise RuntimeError("something inside")

    result = connection_tests.read_result(run(request(), break_down))
    assert result is not None
    assert "something inside" not in result.error
    assert "something inside" in caplog.text


def test_one_at_a_time_for_each_caller() -> None:
    first = request(caller=1)
    with pytest.raises(Conflict, match="under way"):
        request(caller=1)
    request(caller=-1)
    run(first, lists)
    request(caller=1)


def test_test_that_no_worker_has_begun_in_time_is_withdrawn() -> None:
    job = request()
    assert connection_tests.read_result(job) is None
    Job.objects.update(created_at=timezone.now() - timedelta(seconds=TEST_SECONDS + 1))
    job.refresh_from_db()
    result = connection_tests.read_result(job)
    assert result is not None
    assert "No worker was free" in result.error
    job.refresh_from_db()
    assert (job.state, job.sealed) == (JobState.FAILED, "")


def test_worker_that_comes_late_asks_nobody() -> None:
    job = request()
    Job.objects.update(created_at=timezone.now() - timedelta(seconds=TEST_SECONDS + 1))
    asked: list[object] = []
    run(job, lambda *_, **__: asked.append(1))  # type: ignore[arg-type]
    assert asked == []


def test_command_is_tested_by_admins_only() -> None:
    with pytest.raises(NotAllowed):
        request(LOCAL, actor=Actor("e", Role.EDITOR))
    request(REMOTE, actor=Actor("e", Role.EDITOR))


def test_result_is_shown_to_whoever_asked() -> None:
    job = request(caller=1)
    assert connection_tests.find_test(job_id=job.pk, caller=1) == job
    assert connection_tests.find_test(job_id=job.pk, caller=2) is None
