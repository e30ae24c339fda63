"""A refresh stores what a server lists, keeps the last good catalog when it fails, and leaves a record."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
from cryptography.fernet import Fernet
from django.db import connection
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from catalog.access.actors import COMMAND_LINE
from catalog.domain.choices import Transport
from catalog.domain.connection import (
    Connection,
    FailureCode,
    Features,
    Rejected,
    ServerListing,
    UpstreamFailure,
)
from catalog.domain.definitions import Definition
from catalog.domain.limits import REJECTED_OF_A_RUN, REJECTED_OF_A_RUN_BYTES
from catalog.domain.marking import Mark, mark_definition
from catalog.models import CatalogVersion, DecidedList, Job, RefreshRun, Server, ServerFeatures, Tool
from catalog.models.jobs import JobKind, JobState
from catalog.services import connections, decisions, jobs, marks, refresh, retention, servers, snapshots
from tests.harness.rows import make_job, make_server
from tests.sessions.api.calling import make_agent

pytestmark = pytest.mark.django_db


def lists(*names: str, rejected: tuple[Rejected, ...] = ()) -> Callable[..., ServerListing]:
    definitions = tuple({"name": name, "inputSchema": {"type": "object"}} for name in names)
    return lambda *_, **__: ServerListing(
        definitions,
        rejected,
        server_title="Fixture",
        instructions="Ask nicely.",
        protocol_version="2025-11-25",
    )


def fails(connection: Connection, **_: object) -> ServerListing:
    raise UpstreamFailure(FailureCode.REFUSED, "Nothing listens there", stderr_tail="tail")


def stdio_server(**values: object) -> Server:
    return make_server(transport=Transport.STDIO, command="fixture", **values)


def run(server: Server, list_tools: Callable[..., ServerListing]) -> RefreshRun:
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

    def test_of_many_rejected_definitions_some_are_kept_and_the_rest_counted(self) -> None:
        many = tuple(Rejected(f"tool {number}", "no schema") for number in range(9_999))
        record = run(stdio_server(), lists("a", rejected=many))
        assert len(record.rejected) == REJECTED_OF_A_RUN
        assert record.rejected_count == 9_999

    def test_rejected_definitions_are_bounded_in_bytes_too(self) -> None:
        wordy = tuple(Rejected("t" * 128, "😀" * 500) for _ in range(100))
        record = run(stdio_server(), lists("a", rejected=wordy))
        assert len(json.dumps(record.rejected, ensure_ascii=False).encode()) < REJECTED_OF_A_RUN_BYTES * 1.1
        assert (record.rejected_count, len(record.rejected) > 10) == (100, True)

    def test_only_what_the_listing_masked_is_marked_as_masked(self) -> None:
        definitions = tuple(
            {"name": name, "description": "Uses •••.", "inputSchema": {"type": "object"}}
            for name in ("masked", "own")
        )
        run(stdio_server(), lambda *_, **__: ServerListing(definitions, masked=frozenset({"masked"})))
        assert dict(Tool.objects.values_list("name", "mark_count")) == {"masked": 1, "own": 0}

    def test_what_it_leaves_behind_is_pruned_at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(retention, "GONE_TOOLS_OF_A_SERVER", 1)
        server = stdio_server()
        for names in (("a", "b", "c"), ("d",)):
            run(server, lists(*names))
        assert server.tools.count() == 2

    def test_index_is_asked_to_follow_only_when_something_changed(self) -> None:
        server = stdio_server()
        run(server, lists("a"))
        index_jobs = Job.objects.filter(kind=JobKind.UPDATE_INDEX)
        assert index_jobs.count() == 1
        index_jobs.delete()
        run(server, lists("a"))
        assert index_jobs.count() == 0


class TestFeatures:
    """What a server offers beside its tools."""

    FULL = Features(
        resources=({"uri": "memo://1", "name": "one"},),
        templates=({"uriTemplate": "memo://{n}", "name": "memo"},),
        prompts=({"name": "greet", "arguments": [{"name": "who"}]},),
        completions=True,
    )

    def offers(self, features: Features | None) -> Callable[..., ServerListing]:
        return lambda *_, **__: replace(lists("a")(), features=features)

    def stored(self, server: Server) -> Features:
        row = ServerFeatures.objects.get(server=server)
        resources, templates, prompts = map(tuple, (row.resources, row.templates, row.prompts))
        return Features(resources, templates, prompts, row.completions)

    def test_are_stored_as_they_are_listed(self) -> None:
        server = stdio_server()
        run(server, self.offers(self.FULL))
        assert self.stored(server) == self.FULL
        run(server, self.offers(Features()))
        assert self.stored(server) == Features()

    def test_stay_what_they_were_where_they_could_not_be_listed(self) -> None:
        server = stdio_server()
        run(server, self.offers(self.FULL))
        run(server, self.offers(None))
        run(server, fails)
        assert self.stored(server) == self.FULL

    def test_of_a_server_without_any_nothing_is_stored(self) -> None:
        run(stdio_server(), self.offers(Features()))
        assert not ServerFeatures.objects.exists()

    def test_lists_of_agents_follow_a_change_alone(self) -> None:
        server = stdio_server()
        run(server, self.offers(self.FULL))
        decisions.bring_up_to_date()
        seen = []
        for features in (self.FULL, None, replace(self.FULL, completions=False)):
            run(server, self.offers(features))
            seen.append(CatalogVersion.current())
            decisions.bring_up_to_date()
        assert seen[0] == seen[1] < seen[2] == DecidedList.objects.get().catalog_version

    def test_go_with_their_server(self) -> None:
        server = stdio_server()
        run(server, self.offers(self.FULL))
        servers.delete_server(server=server, actor=COMMAND_LINE)
        assert not ServerFeatures.objects.exists()


class TestLongWork:
    """Definitions are looked over before the transaction: it holds the catalog, and SQLite's one writer."""

    @pytest.fixture
    def looked_over(self, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
        """For each definition that was looked over, whether a transaction was open inside the test's own."""
        seen: list[bool] = []
        outside = len(connection.savepoint_ids)

        def look(definition: Definition, **options: bool) -> Sequence[Mark]:
            seen.append(len(connection.savepoint_ids) > outside)
            return mark_definition(definition, **options)

        monkeypatch.setattr(marks, "mark_definition", look)
        return seen

    def test_refresh(self, looked_over: list[bool]) -> None:
        server = stdio_server()
        run(server, lists("a", "b"))
        run(server, lists("a", "b", "c"))
        assert looked_over == [False] * 3

    def test_import_of_a_file(self, looked_over: list[bool]) -> None:
        snapshots.import_snapshots(
            definitions_by_server={"one": [{"name": "a"}], "two": [{"name": "a"}]}, actor=COMMAND_LINE
        )
        assert looked_over == [False] * 2

    def test_snapshot_by_rest(self, looked_over: list[bool]) -> None:
        admin = make_agent(admin=True)
        admin.post("/servers", {"name": "own", "tools": [{"name": "a"}]}, status=201)
        assert looked_over == [False]
        tools = [{"name": "a", "description": "Other."}, {"name": "b"}]
        assert admin.call("PATCH", "/servers/own", {"tools": tools}).json()["tools"] == 2
        assert looked_over == [False] * 3

    def test_tools_from_before_there_were_marks(self, looked_over: list[bool]) -> None:
        run(stdio_server(), lists("a"))
        Tool.objects.update(mark_count=None)
        assert marks.look_over_unmarked() == 1
        assert looked_over == [False] * 2
        assert Tool.objects.get().mark_count == 0


class TestServerDeletedWhileItIsAsked:
    @pytest.mark.parametrize("answer", [lists("a"), fails])
    def test_refresh_ends_without_a_record(self, answer: Callable[..., ServerListing]) -> None:
        server = stdio_server()

        def delete_and_answer(connection: Connection, **limits: object) -> ServerListing:
            servers.delete_server(server=server, actor=COMMAND_LINE)
            return answer(connection, **limits)

        job = refresh.request_refresh(server=server)
        refresh_it = partial(refresh.run_refresh, list_tools=delete_and_answer)
        assert jobs.run_job(job_id=job.pk, holder="worker", handlers={JobKind.REFRESH_SERVER: refresh_it})
        job.refresh_from_db()
        assert (job.state, job.attempts, job.error) == (JobState.DONE, 1, "")
        assert not RefreshRun.objects.exists()


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
        def stumble(connection: Connection, **_: object) -> ServerListing:
            raise ZeroDivisionError("a secret might be in here")

        server = stdio_server()
        record = run(server, stumble)
        assert record.error == "The refresh failed (ZeroDivisionError): see the worker's log"
        assert server.status == "failing"
        assert Job.objects.get(kind=JobKind.REFRESH_SERVER).state == "waiting"

    def test_introduction_longer_than_its_columns_is_cut(self) -> None:
        server = stdio_server()
        long = "x" * 500
        listing = ServerListing((), server_title=long, server_version=long, protocol_version=long)
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

        def be_overtaken(connection: Connection, **_: object) -> ServerListing:
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

    def test_many_servers_cost_as_many_statements_as_one(
        self, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        past = timezone.now() - timedelta(minutes=1)
        due = [stdio_server(next_refresh_at=past) for _ in range(20)]
        waits = jobs.request_job(kind=JobKind.REFRESH_SERVER, subject=due[0].pk)
        with django_assert_num_queries(2):
            assert refresh.request_due_refreshes(now=timezone.now()) == 19
        assert {job.subject for job in Job.objects.open()} == {server.pk for server in due}
        assert Job.objects.get(subject=due[0].pk) == waits

    def test_job_that_was_added_meanwhile_is_left_as_it_is(self) -> None:
        later = timezone.now() + timedelta(minutes=1)
        waits = make_job(subject=7, run_after=later)
        jobs.ensure_jobs(kind=JobKind.REFRESH_SERVER, subjects=[7, 8])
        assert sorted(Job.objects.values_list("subject", flat=True)) == [7, 8]
        waits.refresh_from_db()
        assert waits.run_after == later

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


class TestSilentServers:
    """Servers that hold a worker's thread until their time is over leave threads for the others."""

    @staticmethod
    def ask(count: int, **values: object) -> list[int]:
        return [refresh.request_refresh(server=stdio_server(**values)).pk for _ in range(count)]

    @staticmethod
    def woken() -> set[int]:
        now = timezone.now()
        return {pk for pk, _ in jobs.take_wakeable(now=now, held_back=refresh.find_held_back(now=now))}

    SILENT = {"failures": 1, "last_error_code": "connect_timeout", "last_refreshed_at": timezone.now()}
    GOOD = {"last_refreshed_at": timezone.now()}

    def test_those_that_timed_out_take_half_of_the_threads(self) -> None:
        silent = self.ask(16, **self.SILENT)
        good = self.ask(3, **self.GOOD)
        assert self.woken() == {*silent[:4], *good}
        assert self.woken() == set()

    def test_the_next_is_asked_when_one_has_ended(self) -> None:
        silent = self.ask(6, **self.SILENT)
        assert self.woken() == set(silent[:4])
        for job_id in silent[:4]:
            jobs.claim_job(job_id=job_id, holder="worker")
        Job.objects.update(woken_at=None)
        assert self.woken() == set()
        Job.objects.filter(pk=silent[1]).update(state="done", held_by="", held_until=None)
        assert self.woken() == {silent[4]}

    def test_those_never_reached_leave_threads_for_the_known_ones(self) -> None:
        new = self.ask(16)
        good = self.ask(5, **self.GOOD)
        assert self.woken() == {*new[:6], *good}

    def test_new_ones_have_threads_beside_those_that_timed_out(self) -> None:
        silent = self.ask(16, **self.SILENT)
        new = self.ask(5)
        assert self.woken() == {*silent[:4], *new[:2]}

    def test_refreshes_that_fail_at_once_are_not_held_back(self) -> None:
        failing = self.ask(10, **{**self.SILENT, "last_error_code": "refused"})
        assert self.woken() == set(failing)
