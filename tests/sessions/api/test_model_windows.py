"""The context window of a session's model, from the table of models, where the session has none itself."""

from typing import Any

import pytest

from catalog.access.actors import COMMAND_LINE
from catalog.models import ModelSupport, Policy
from catalog.services import policies
from sessions.offers import known_models
from tests.sessions.api.calling import Agent, follow

pytestmark = pytest.mark.django_db

SMALL, LARGE = 400, 1_000_000


def change_default(**fields: Any) -> None:
    policy = Policy.objects.get(slug="default")
    policies.change_policy(policy=policy, changed=fields, actor=COMMAND_LINE)
    follow()


def set_window(tokens: int | None, pattern: str = "house-*") -> None:
    """What an admin's edit of the row does, seen by a process that looks again."""
    ModelSupport.objects.update_or_create(
        name_pattern=pattern, defaults={"provider": "other", "context_window": tokens}
    )
    known_models.clear()


@pytest.fixture
def by_percent(agent: Agent) -> Agent:
    """The catalog is some 60 tokens: past ten percent of the small window, not of the policy's."""
    change_default(mode="auto", threshold_unit="context_percent", threshold=10)
    return agent


class TestPercentOfTheWindow:
    def test_models_row_counts_before_the_policy(self, by_percent: Agent) -> None:
        set_window(SMALL)
        session = by_percent.begin(model="house-1")
        state = session.state()
        assert (state["context_window"], state["active"]) == (SMALL, True)
        assert session.tools()["active"] is True
        assert by_percent.begin(model="unknown").state()["active"] is False
        assert by_percent.begin().state()["context_window"] == 200_000

    def test_sessions_own_window_counts_before_the_models(self, by_percent: Agent) -> None:
        set_window(SMALL)
        state = by_percent.begin(model="house-1", context_window=LARGE).state()
        assert (state["context_window"], state["active"]) == (LARGE, False)

    def test_row_without_a_window_leaves_it_to_the_policy(self, by_percent: Agent) -> None:
        set_window(None)
        assert by_percent.begin(model="house-1").state()["context_window"] == 200_000

    def test_models_row_counts_before_the_window_that_the_policy_has(self, by_percent: Agent) -> None:
        change_default(context_window=5_000)
        set_window(SMALL)
        session = by_percent.begin(model="house-1")
        assert (session.state()["context_window"], session.state()["active"]) == (SMALL, True)
        set_window(None)
        assert (session.state()["context_window"], session.state()["active"]) == (5_000, False)

    def test_list_of_sessions_says_the_same(self, by_percent: Agent) -> None:
        set_window(SMALL)
        by_percent.begin(model="house-1")
        assert by_percent.read("/sessions")["items"][0]["context_window"] == SMALL

    def test_session_with_tools_of_its_own_uses_it_too(self, by_percent: Agent) -> None:
        set_window(SMALL)
        state = by_percent.begin(model="house-1", builtin_tools=[{"name": "bash"}]).state()
        assert state["active"] is True

    def test_edit_of_the_row_is_a_new_list(self, by_percent: Agent) -> None:
        set_window(LARGE)
        session = by_percent.begin(model="house-1")
        whole = by_percent.get(f"{session.path}/tools")
        assert whole.json()["active"] is False
        set_window(SMALL)
        answer = by_percent.get(f"{session.path}/tools", If_None_Match=whole["ETag"])
        assert (answer.status_code, answer.json()["active"]) == (200, True)
        again = by_percent.get(f"{session.path}/tools", If_None_Match=answer["ETag"])
        assert again.status_code == 304


class TestShareOfTheWindowUsed:
    def test_conversation_is_long_for_a_small_window(self, agent: Agent) -> None:
        change_default(mode="auto", threshold_unit="context_used", threshold=10)
        set_window(SMALL)
        small, plain = agent.begin(model="house-1"), agent.begin()
        for session in (small, plain):
            session.do("turns", context_used=SMALL // 10)
        assert (small.state()["active"], plain.state()["active"]) == (True, False)
        assert (small.tools()["active"], plain.tools()["active"]) == (True, False)

    def test_past_it_once_stays_past_it_until_reset(self, agent: Agent) -> None:
        change_default(mode="auto", threshold_unit="context_used", threshold=10)
        set_window(SMALL)
        session = agent.begin(model="house-1")
        session.do("turns", context_used=SMALL // 10)
        set_window(LARGE)
        assert session.do("turns", context_used=1)["active"] is True
        assert session.do("reset")["active"] is False


def test_row_that_changes_nothing_for_the_policy_leaves_the_tag(agent: Agent) -> None:
    set_window(LARGE)
    session = agent.begin(model="house-1")
    tag = agent.get(f"{session.path}/tools")["ETag"]
    set_window(SMALL)
    assert agent.get(f"{session.path}/tools", If_None_Match=tag).status_code == 304


def test_state_sent_back_does_not_make_the_window_the_sessions_own(agent: Agent) -> None:
    set_window(LARGE)
    talk = agent.begin(model="house-1")
    state = talk.state()
    assert state["context_window"] == LARGE
    agent.call("PATCH", talk.path, {**state, "model": "another"})
    assert talk.state()["context_window"] == 200_000


def test_state_that_begins_a_session_does_not_make_the_window_its_own(agent: Agent) -> None:
    set_window(LARGE)
    state = agent.begin(model="house-1").state()
    copy = agent.begin(**state)
    set_window(SMALL)
    assert copy.state()["context_window"] == SMALL


def test_window_that_was_edited_in_a_state_is_the_sessions_own(agent: Agent) -> None:
    set_window(LARGE)
    talk = agent.begin(model="house-1")
    state = {**talk.state(), "context_window": 5_000}
    agent.call("PATCH", talk.path, state)
    copy = agent.begin(**state)
    set_window(SMALL)
    assert (talk.state()["context_window"], copy.state()["context_window"]) == (5_000, 5_000)


def test_window_that_an_agent_sets_is_its_own_also_where_it_is_the_one_in_force(agent: Agent) -> None:
    set_window(LARGE)
    talk = agent.begin(model="house-1")
    agent.call("PATCH", talk.path, {"context_window": LARGE})
    together = agent.begin()
    agent.call("PATCH", together.path, {"model": "house-1", "context_window": 200_000})
    set_window(SMALL)
    assert (talk.state()["context_window"], together.state()["context_window"]) == (LARGE, 200_000)
    agent.call("PATCH", talk.path, {"context_window": None})
    assert talk.state()["context_window"] == SMALL
