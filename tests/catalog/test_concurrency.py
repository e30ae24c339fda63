"""Transactions that meet, each on a connection of its own: no lost update, no deadlock."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest
from django.db import OperationalError, connection, transaction
from django.utils import timezone

from catalog.access.actors import COMMAND_LINE
from catalog.domain.choices import Kind
from catalog.models import DecidedList, Decision, Job, ModelSupport, Policy, SavedQuery, Server, Tool
from catalog.models.jobs import JobKind
from catalog.services import decisions, jobs, policies, saved_queries, servers, tool_settings
from tests.harness.rows import make_job, make_policy, make_server, make_tool
from tests.sessions.api.calling import Agent, make_agent

pytestmark = [pytest.mark.concurrent, pytest.mark.django_db(transaction=True, serialized_rollback=True)]

Result = TypeVar("Result")


def beside(work: Callable[[], Result]) -> Result:
    """Do it on another connection, which gives up at once where it would have to wait for ours."""

    def run() -> Result:
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '200ms'")
        try:
            return work()
        finally:
            with connection.cursor() as cursor:
                cursor.execute("RESET lock_timeout")  # the pool gives the connection to others
            connection.close()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(run).result()


def close_after(work: Callable[..., Result]) -> Callable[..., Result]:
    def run(*given: Any) -> Result:
        try:
            return work(*given)
        finally:
            connection.close()

    return run


def go_on_until_it_waits(work: Future[Any]) -> None:
    """Return when the work of another thread has ended or waits for a lock."""
    waiting = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    while not wait([work], timeout=0.01).done:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_stat_clear_snapshot()")  # else a transaction sees one state throughout
            cursor.execute(waiting)
            if cursor.fetchone():
                return


@contextmanager
def meeting(work: Callable[[], Any], when: Callable[[str], bool]) -> Iterator[None]:
    """Start work on another connection before the first of our statements that fits, and go on with ours when
    it waits or has ended. Raises what it raised.
    """
    begun: list[Future[Any]] = []

    def start(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if not begun and when(sql):
            begun.append(thread.submit(close_after(work)))
            go_on_until_it_waits(begun[0])
        return execute(sql, *rest)

    with ThreadPoolExecutor(1) as thread:
        with connection.execute_wrapper(start):
            yield
        for each in begun:
            each.result()
    assert begun


class TestJobs:
    def test_worker_cannot_claim_a_job_while_it_is_being_requested(self) -> None:
        waiting = make_job(subject=7)
        refused: list[OperationalError] = []

        def claim(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
            if sql.startswith("SELECT") and "catalog_job" in sql and not refused:
                try:
                    beside(lambda: jobs.claim_job(job_id=waiting.pk, holder="worker"))
                except OperationalError as error:
                    refused.append(error)
            return execute(sql, *rest)

        with connection.execute_wrapper(claim):
            assert jobs.request_job(kind=JobKind.REFRESH_SERVER, subject=7) == waiting
        assert len(refused) == 1

    def test_request_that_meets_another_one_is_one_job(self) -> None:
        with ThreadPoolExecutor(8) as threads:
            request = close_after(lambda _: jobs.request_job(kind=JobKind.DECIDE).pk)
            assert len(set(threads.map(request, range(40)))) == 1

    def test_waking_leaves_out_what_another_transaction_writes_to(self) -> None:
        first, second = make_job(subject=1), make_job(subject=2)
        with transaction.atomic():
            jobs.request_job(kind=JobKind.REFRESH_SERVER, subject=2)
            woken = beside(lambda: jobs.take_wakeable(now=timezone.now()))
            beside(lambda: jobs.forget_wake_ups([first.pk, second.pk]))
            jobs.request_job(kind=JobKind.REFRESH_SERVER, subject=1)
        assert [job_id for job_id, _ in woken] == [first.pk]
        assert {job_id for job_id, _ in jobs.take_wakeable(now=timezone.now())} == {first.pk, second.pk}

    def test_imports_at_once_while_workers_are_woken(self) -> None:
        admin, is_over = make_agent(admin=True), threading.Event()

        def wake() -> None:
            while not is_over.is_set():
                jobs.forget_wake_ups([pk for pk, _ in jobs.take_wakeable(now=timezone.now())])

        waker = threading.Thread(target=close_after(wake))
        waker.start()
        try:
            with ThreadPoolExecutor(8) as threads:
                statuses = list(threads.map(close_after(lambda turn: import_ten(admin, turn)), range(24)))
        finally:
            is_over.set()
            waker.join()
        assert set(statuses) == {200}
        assert Job.objects.open().filter(kind=JobKind.REFRESH_SERVER).count() == 10


class TestPatches:
    """Each field alone is written by its own call; of two at once none may be lost."""

    TURNS = 15

    def patch_at_once(self, admin: Agent, path: str, *bodies: dict[str, Any]) -> None:
        start = threading.Barrier(len(bodies))

        def patch(body: dict[str, Any]) -> int:
            start.wait()
            status: int = admin.call("PATCH", path, body).status_code
            return status

        with ThreadPoolExecutor(len(bodies)) as threads:
            assert set(threads.map(close_after(patch), bodies)) == {200}

    def test_of_a_server(self) -> None:
        admin = make_agent(admin=True)
        admin.post("/servers", {"name": "s", "url": "https://mcp.example.com/mcp"}, status=201)
        for turn in range(self.TURNS):
            headers = {"headers": {"X-Turn": f"{turn}"}}
            transport = "sse" if turn % 2 else "http"
            self.patch_at_once(admin, "/servers/s", headers, {"transport": transport})
            entry = servers.read_entry(Server.objects.get(name="s"))
            assert (dict(entry.headers), entry.transport) == ({"X-Turn": f"{turn}"}, transport)

    def test_of_a_policy(self) -> None:
        admin = make_agent(admin=True)
        for turn in range(1, self.TURNS):
            self.patch_at_once(admin, "/policies/default", {"max_results": turn}, {"threshold": turn})
            policy = Policy.objects.get(slug="default")
            assert (policy.max_results, policy.threshold) == (turn, turn)

    def test_of_a_tool(self) -> None:
        tool, admin = make_tool(), make_agent(admin=True)
        for turn in range(self.TURNS):
            words = {"keywords": [f"k{turn}"]}
            self.patch_at_once(admin, f"/tools/{tool.qualified_name}", words, {"tags": [f"t{turn}"]})
            settings = tool_settings.settings_of(Tool.objects.get(pk=tool.pk))
            assert (settings["keywords"], settings["tags"]) == ([f"k{turn}"], [f"t{turn}"])

    def test_of_a_model(self) -> None:
        admin, row = make_agent(admin=True), ModelSupport.objects.all()[0]
        for turn in range(1, self.TURNS):
            pattern = {"name_pattern": f"model-{turn}*"}
            self.patch_at_once(admin, f"/models/{row.pk}", pattern, {"context_window": turn})
            row.refresh_from_db()
            assert (row.name_pattern, row.context_window) == (f"model-{turn}*", turn)

    def test_with_one_tag_only_the_first_is_made(self) -> None:
        admin, start = make_agent(admin=True), threading.Barrier(4)
        tag = admin.get("/policies/default").headers["ETag"]

        def patch(number: int) -> int:
            start.wait()
            answer = admin.call("PATCH", "/policies/default", {"max_results": number}, If_Match=tag)
            status: int = answer.status_code
            return status

        with ThreadPoolExecutor(4) as threads:
            statuses = list(threads.map(close_after(patch), range(10, 14)))
        assert sorted(statuses) == [200, 412, 412, 412]

    def test_server_is_made_once(self) -> None:
        admin, start = make_agent(admin=True), threading.Barrier(4)

        def create(number: int) -> int:
            start.wait()
            body = {"name": "s", "url": f"https://mcp.example.com/{number}"}
            status: int = admin.call("POST", "/servers", body).status_code
            return status

        with ThreadPoolExecutor(4) as threads:
            assert sorted(threads.map(close_after(create), range(4))) == [201, 409, 409, 409]


class TestDecisions:
    """Whoever writes decisions holds the policies' lists, and then waits for the tools that they name."""

    @staticmethod
    def writes_decisions(sql: str) -> bool:
        return "INSERT INTO catalog_decision " in sql

    def test_kind_of_a_server_changes_while_its_tools_are_decided(self) -> None:
        server = make_server(name="s")
        for number in range(3):
            make_tool(server=server, name=f"t{number}")

        def change() -> None:
            servers.set_kind(server=server, kind=Kind.PLUGIN, actor=COMMAND_LINE)

        with meeting(change, self.writes_decisions):
            decisions.bring_up_to_date()
        decisions.bring_up_to_date()
        names = set(Decision.objects.values_list("tool__qualified_name", flat=True))
        assert names == {f"plugin__s__t{number}" for number in range(3)}

    def test_policy_is_deleted_while_it_is_decided(self) -> None:
        tool, policy = make_tool(), make_policy()
        decisions.bring_up_to_date()
        tool_settings.change_tool(tool=tool, actor=COMMAND_LINE, hidden=True)

        def delete() -> None:
            policies.delete_policy(policy=policy, actor=COMMAND_LINE)

        with meeting(delete, lambda sql: sql.startswith('DELETE FROM "catalog_decision"')):
            decisions.bring_up_to_date()
        assert DecidedList.objects.count() == Policy.objects.count() == 1

    @pytest.mark.parametrize("is_first", [True, False])
    def test_server_is_deleted_while_its_tools_are_decided(self, is_first: bool) -> None:
        kept, server = make_tool(), make_server()
        if not is_first:
            decisions.bring_up_to_date()
        make_tool(server=server)

        def delete() -> None:
            servers.delete_server(server=server, actor=COMMAND_LINE)

        with meeting(delete, self.writes_decisions):
            decisions.bring_up_to_date()
        decisions.bring_up_to_date()
        assert list(Decision.objects.values_list("tool_id", flat=True)) == [kept.pk]
        assert DecidedList.objects.get().tools == 1


class TestSavedQueries:
    def test_query_saved_while_its_tools_are_renamed(self) -> None:
        server, policy = make_server(name="s"), Policy.objects.get(slug="default")
        for name in ("send", "read"):
            make_tool(server=server, name=name)

        def save(*names: str) -> None:
            saved_queries.save_query(policy=policy, query="post", expected=names, actor=COMMAND_LINE)

        save("send")
        with meeting(lambda: save("send", "read"), lambda sql: 'UPDATE "catalog_savedquery"' in sql):
            servers.set_kind(server=server, kind=Kind.PLUGIN, actor=COMMAND_LINE)
        assert SavedQuery.objects.get().expected == ["plugin__s__send", "plugin__s__read"]


def import_ten(admin: Agent, turn: int) -> int:
    """The same ten servers each time, at another address and in another order."""
    numbers = range(10) if turn % 2 else range(9, -1, -1)
    entries = {f"s{number}": {"url": f"https://mcp.example.com/{turn}/{number}"} for number in numbers}
    status: int = admin.call("POST", "/config", {"mcpServers": entries}).status_code
    return status
