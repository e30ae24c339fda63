"""A refresh stores what a server lists, keeps the last good catalog when it fails, and leaves a record."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from cryptography.fernet import Fernet
from django.utils import timezone
from pytest_django import Settings

from catalog.domain.choices import Transport
from catalog.domain.connection import Connection, FailureCode, Listing, Rejected, UpstreamFailure
from catalog.models import Job, RefreshRun, Server, Tool
from catalog.models.jobs import JobKind
from catalog.services import connections, jobs, refresh
from tests.rows import make_server

pytestmark = pytest.mark.django_db


def lists(*names: str, rejected: tuple[Rejected, ...] = ()) -> Callable[..., Listing]:
    definitions = tuple({"name": name, "inputSchema": {"type": "object"}} for name in names)
    return lambda connection, **_: Listing(
        definitions,
        rejected,
        server_title="Fixture",
        instructions="Ask nicely.",
        protocol_version="2025-11-25",
    )


def fails(connection: Connection, **_: object) -> Listing:
    raise UpstreamFailure(FailureCode.REFUSED, "Nothing listens there", stderr_tail="tail")


def stdio_server(**values: object) -> Server:
    return make_server(transport=Transport.STDIO, command="fixture", **values)


def run(server: Server, list_tools: Callable[..., Listing]) -> RefreshRun:
    job = refresh.request_refresh(server=server)
    handlers = {JobKind.REFRESH_SERVER: lambda held: refresh.run_refresh(held, list_tools=list_tools)}
    assert jobs.run_job(job_id=job.pk, holder="worker", handlers=handlers)
    server.refresh_from_db()
    return RefreshRun.objects.get(job=job)


def tool_names() -> list[str]:
    return list(Tool.objects.filter(gone_at=None).order_by("name").values_list("name", flat=True))


class TestSuccess:
    def test_catalog_equals_the_listing(self) -> None:
        server = stdio_server()
        run(server, lists("a", "b"))
        record = run(server, lists("b", "c"))
        assert tool_names() == ["b", "c"]
        assert (record.added, record.changed, record.gone, record.unchanged) == (1, 0, 1, 1)

    def test_server_says_who_it_is(self) -> None:
        server = stdio_server()
        run(server, lists("a"))
        assert (server.title, server.instructions, server.status) == ("Fixture", "Ask nicely.", "ok")
        assert server.next_refresh_at is not None
        assert server.next_refresh_at > timezone.now() + timedelta(minutes=50)

    def test_rejected_definitions_are_reported(self) -> None:
        record = run(stdio_server(), lists("a", rejected=(Rejected("b", "no schema"),)))
        assert record.rejected == [{"name": "b", "why": "no schema"}]

    def test_index_is_asked_to_follow_only_when_something_changed(self) -> None:
        server = stdio_server()
        run(server, lists("a"))
        index_jobs = Job.objects.filter(kind=JobKind.UPDATE_INDEX)
        assert index_jobs.count() == 1
        index_jobs.delete()
        run(server, lists("a"))
        assert index_jobs.count() == 0


class TestFailure:
    def test_last_good_catalog_is_kept_and_the_error_shown(self) -> None:
        server = stdio_server()
        run(server, lists("a"))
        record = run(server, fails)
        assert tool_names() == ["a"]
        assert (record.error_code, record.error) == ("refused", "Nothing listens there")
        assert (server.status, server.last_error, server.stderr_tail) == (
            "failing",
            "Nothing listens there",
            "tail",
        )
        assert server.stale_since is not None

    def test_stale_since_stays_at_the_first_failure_and_ends_with_success(self) -> None:
        server = stdio_server()
        run(server, fails)
        first = server.stale_since
        run(server, fails)
        assert server.stale_since == first
        run(server, lists("a"))
        assert (server.stale_since, server.failures, server.last_error) == (None, 0, "")

    def test_waits_longer_after_each_failure(self) -> None:
        server, waits = stdio_server(), []
        for _ in range(4):
            run(server, fails)
            assert server.next_refresh_at is not None
            waits.append(server.next_refresh_at - timezone.now())
        assert waits == sorted(waits)
        assert waits[-1] > waits[0] * 4

    def test_mistake_of_ours_is_shown_and_tried_again(self) -> None:
        def stumble(connection: Connection, **_: object) -> Listing:
            raise ZeroDivisionError("a secret might be in here")

        server = stdio_server()
        record = run(server, stumble)
        assert record.error == "The refresh failed (ZeroDivisionError): see the worker's log"
        assert server.status == "failing"
        assert Job.objects.get(kind=JobKind.REFRESH_SERVER).state == "waiting"

    def test_introduction_longer_than_its_columns_is_cut(self) -> None:
        server = stdio_server()
        long = "x" * 500
        listing = Listing((), server_title=long, server_version=long, protocol_version=long)
        run(server, lambda *_, **__: listing)
        assert (len(server.title), len(server.version), len(server.protocol_version)) == (200, 100, 40)

    def test_lost_encryption_key_is_said_in_words(self, settings: Settings) -> None:
        server = stdio_server()
        connections.write_connection(server, Connection(Transport.STDIO, command="fixture", args=("secret",)))
        server.save()
        settings.ENCRYPTION_KEYS = (Fernet.generate_key().decode(),)
        record = run(server, lists("a"))
        assert record.error_code == "secrets_unreadable"
        assert "add the key it was sealed with" in server.last_error


class TestSecondWorker:
    def test_does_nothing(self) -> None:
        server = stdio_server()
        job = refresh.request_refresh(server=server)
        for listing in (lists("a"), lists("b")):
            handlers = {
                JobKind.REFRESH_SERVER: lambda held, use=listing: refresh.run_refresh(held, list_tools=use)
            }
            jobs.run_job(job_id=job.pk, holder="worker", handlers=handlers)
        assert tool_names() == ["a"]

    def test_cannot_store_after_it_was_overtaken(self) -> None:
        server = stdio_server()
        job = refresh.request_refresh(server=server)

        def be_overtaken(connection: Connection, **_: object) -> Listing:
            Job.objects.filter(pk=job.pk).update(held_until=timezone.now() - timedelta(seconds=1))
            assert jobs.claim_job(job_id=job.pk, holder="another")
            return lists("late")(connection)

        handlers = {JobKind.REFRESH_SERVER: lambda held: refresh.run_refresh(held, list_tools=be_overtaken)}
        jobs.run_job(job_id=job.pk, holder="worker", handlers=handlers)
        assert tool_names() == []
        assert not RefreshRun.objects.exists()


class TestDue:
    def test_only_what_is_due_enabled_and_not_a_snapshot(self) -> None:
        past, future = timezone.now() - timedelta(minutes=1), timezone.now() + timedelta(minutes=1)
        due = stdio_server(next_refresh_at=past)
        stdio_server(next_refresh_at=future)
        stdio_server(next_refresh_at=past, enabled=False)
        make_server(next_refresh_at=past)
        assert refresh.request_due_refreshes(now=timezone.now()) == 1
        assert Job.objects.get().subject == due.pk

    def test_refresh_under_way_is_not_asked_for_again(self) -> None:
        server = stdio_server(next_refresh_at=timezone.now() - timedelta(minutes=1))
        job = refresh.request_refresh(server=server)
        jobs.claim_job(job_id=job.pk, holder="worker")
        assert refresh.request_due_refreshes(now=timezone.now()) == 0

    def test_disabled_meanwhile_is_left_alone(self) -> None:
        server = stdio_server()
        job = refresh.request_refresh(server=server)
        Server.objects.update(enabled=False)
        handlers = {JobKind.REFRESH_SERVER: lambda held: refresh.run_refresh(held, list_tools=fails)}
        assert jobs.run_job(job_id=job.pk, holder="worker", handlers=handlers)
        assert not RefreshRun.objects.exists()
