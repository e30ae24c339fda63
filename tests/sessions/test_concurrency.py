"""Agents that meet, each on a connection of its own: nothing that one of them did is lost."""

import threading
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

import pytest
from django.db import connection

from catalog import process_memory
from catalog.models import Policy
from sessions.models import AgentSession, LoadedTool
from sessions.offers import offer_cache
from tests.harness.rows import make_policy
from tests.sessions.api.calling import Agent, fill_catalog, make_agent

pytestmark = [pytest.mark.concurrent, pytest.mark.django_db(transaction=True, serialized_rollback=True)]

Result = TypeVar("Result")
TIMEOUT_SECONDS = 20
TOOLS = ("create_issue", "list_issues", "merge_pull_request", "send_message", "read_file")


def at_once(work: Callable[[Any], Result], given: Sequence[Any]) -> list[Result]:
    start = threading.Barrier(len(given))

    def run(one: Any) -> Result:
        start.wait(TIMEOUT_SECONDS)
        try:
            return work(one)
        finally:
            connection.close()

    with ThreadPoolExecutor(len(given)) as threads:
        return list(threads.map(run, given))


@pytest.fixture
def agent() -> Agent:
    fill_catalog()
    return make_agent()


class TestSearches:
    def test_of_one_session_load_all_that_each_found(self, agent: Agent) -> None:
        for _ in range(5):
            session = agent.begin()
            found = at_once(session.search, [f"select:{name}" for name in TOOLS])
            loaded = sorted(name for one in found for name in one["loaded"])
            rows = LoadedTool.objects.filter(session=uuid.UUID(session.id)).order_by("position")
            assert sorted(rows.values_list("name", flat=True)) == loaded
            assert len(loaded) == len(TOOLS)
            assert list(rows.values_list("position", flat=True)) == [1, 2, 3, 4, 5]
            assert sorted(rows.values_list("used_order", flat=True)) == [1, 2, 3, 4, 5]
            assert AgentSession.objects.get(pk=session.id).version == 1 + len(TOOLS)

    def test_of_the_same_tools_load_them_once(self, agent: Agent) -> None:
        for _ in range(5):
            session = agent.begin()
            found = at_once(session.search, ["select:create_issue"] * 4)
            assert sorted(len(one["loaded"]) for one in found) == [0, 0, 0, 1]
            assert LoadedTool.objects.filter(session=uuid.UUID(session.id)).count() == 1

    def test_beside_a_change_of_the_session_lose_nothing_of_either(self, agent: Agent) -> None:
        for number in range(5):
            session = agent.begin()
            calls: list[Callable[[], Any]] = [
                partial(session.search, "select:create_issue"),
                partial(agent.call, "PATCH", session.path, {"model": f"m{number}"}),
                partial(session.do, "turns", context_used=7),
            ]
            at_once(lambda call: call(), calls)
            row = AgentSession.objects.get(pk=session.id)
            assert (row.model, row.turn, row.context_used) == (f"m{number}", 1, 7)
            assert row.loaded_tools.count() == 1


class TestLimits:
    @pytest.mark.parametrize("of_key", [True, False])
    def test_small_one_holds_when_sessions_begin_at_the_same_time(self, agent: Agent, of_key: bool) -> None:
        if of_key:
            agent = make_agent(max_sessions=3)
        else:
            Policy.objects.filter(slug="default").update(max_sessions=3)
        for _ in range(5):
            at_once(lambda _: agent.begin(), range(6))
            assert AgentSession.objects.count() == 3


class TestOffers:
    def test_of_several_policies_are_read_at_the_same_time(self, agent: Agent) -> None:
        policies = [make_policy() for _ in range(4)]
        process_memory.reset()
        offers = at_once(lambda policy: offer_cache.offer_of_policy(policy.pk), policies)
        texts = [[tool.text for tool in offer.tools] for offer in offers]
        assert len(texts[0]) == len(TOOLS)
        for others in texts[1:]:
            assert all(one is other for one, other in zip(texts[0], others, strict=True))
