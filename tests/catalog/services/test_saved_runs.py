"""Running the saved queries: judged as agents search, kept for each state, run again after a change."""

import pytest

from catalog.access.actors import COMMAND_LINE
from catalog.models import Job, Policy, SavedResult, SavedRun
from catalog.models.jobs import JobKind
from catalog.selectors import saved_queries as selectors
from catalog.selectors.saved_queries import ResultTrend
from catalog.services import derived_state, policies, saved_queries, saved_runs, tool_settings
from catalog.tasks import HANDLERS
from tests.harness.rows import make_job, make_policy, make_server, make_tool

pytestmark = pytest.mark.django_db


@pytest.fixture
def policy() -> Policy:
    """Seven tools that speak of messages, one of which writes them."""
    slack = make_server(name="slack")
    make_tool(server=slack, name="send_message", description="Write to a channel.")
    for number in range(6):
        make_tool(server=slack, name=f"message_{number}", description="One message.")
    derived_state.bring_up_to_date()
    return Policy.objects.get(slug="default")


def save(policy: Policy, query: str, *expected: str) -> None:
    saved_queries.save_query(policy=policy, query=query, expected=expected, actor=COMMAND_LINE)


def hide(policy: Policy, *visible: str) -> None:
    """Break by a setting: only these tools exist for the policy's agents."""
    policies.change_policy(policy=policy, changed={"visible": list(visible)}, actor=COMMAND_LINE)
    derived_state.bring_up_to_date()


def run(policy: Policy) -> SavedRun:
    made = saved_runs.run_policy(policy)
    assert made is not None
    return made


class TestOneRun:
    def test_passes_when_every_expected_tool_is_among_the_first_five(self, policy: Policy) -> None:
        save(policy, "send message", "send_message")
        made = run(policy)
        assert (made.queries, made.passed, made.recall) == (1, 1, 1.0)
        assert SavedResult.objects.get().places == {"mcp__slack__send_message": 1}

    def test_place_past_the_fifth_is_told_and_fails(self, policy: Policy) -> None:
        policies.change_policy(policy=policy, changed={"ranker": "keyword"}, actor=COMMAND_LINE)
        save(policy, "message", "message_5")
        made = run(policy)
        result = SavedResult.objects.get()
        assert result.places == {"mcp__slack__message_5": 6}
        assert (result.passed, made.passed, made.recall) == (False, 0, 0.0)

    def test_recall_is_the_share_found_and_the_mean_over_queries(self, policy: Policy) -> None:
        save(policy, "send message", "send_message")
        save(policy, "send", "send_message", "message_5")
        made = run(policy)
        assert made.recall == pytest.approx(0.75)
        assert made.passed == 1

    def test_tool_that_went_away_is_not_found(self, policy: Policy) -> None:
        save(policy, "send message", "send_message")
        policy.saved_queries.update(expected=["mcp__slack__was_here"])
        run(policy)
        assert SavedResult.objects.get().places == {"mcp__slack__was_here": None}

    def test_settings_of_the_policy_count(self, policy: Policy) -> None:
        save(policy, "+slack send", "send_message")
        assert run(policy).passed == 1
        hide(policy, "slack/message_*")
        assert run(policy).passed == 0

    def test_nothing_saved_or_nothing_decided_is_no_run(self, policy: Policy) -> None:
        assert saved_runs.run_policy(policy) is None
        undecided = make_policy()
        save(undecided, "send", "send_message")
        assert saved_runs.run_policy(undecided) is None


class TestRuns:
    def test_same_state_again_replaces_the_run(self, policy: Policy) -> None:
        save(policy, "send message", "send_message")
        first = run(policy)
        save(policy, "message", "message_5")
        second = run(policy)
        assert (second.pk, second.queries) == (first.pk, 2)
        assert second.at > first.at

    def test_oldest_are_forgotten(self, policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(saved_runs, "KEPT_RUNS", 2)
        save(policy, "send message", "send_message")
        for visible in ("a", "b", "c"):
            run(policy)
            hide(policy, visible)
        assert SavedRun.objects.count() == 2


class TestAfterAChange:
    def test_run_is_asked_for_once_index_and_decisions_have_followed(self, policy: Policy) -> None:
        save(policy, "send message", "send_message")
        assert self.is_asked()
        run(policy)
        assert not self.is_asked()
        tool = policy.decisions.get(tool__name="send_message").tool
        tool_settings.change_tool(tool=tool, hidden=True, actor=COMMAND_LINE)
        assert not self.is_asked()  # the decisions have not followed yet
        derived_state.bring_up_to_date()
        assert self.is_asked()

    def test_worker_runs_what_is_stale_and_nothing_else(self, policy: Policy) -> None:
        save(policy, "send message", "send_message")
        fresh = run(policy)
        other = make_policy(slug="other")
        derived_state.bring_up_to_date()
        save(other, "send message", "send_message")
        HANDLERS[JobKind.RUN_SAVED_QUERIES](make_job(kind=JobKind.RUN_SAVED_QUERIES))
        assert SavedRun.objects.get(policy=other).passed == 1
        assert SavedRun.objects.get(policy=policy).at == fresh.at

    def test_policy_without_saved_queries_asks_for_nothing(self, policy: Policy) -> None:
        assert not self.is_asked()

    @staticmethod
    def is_asked() -> bool:
        Job.objects.all().delete()
        derived_state.request_if_behind()
        return Job.objects.filter(kind=JobKind.RUN_SAVED_QUERIES).exists()


class TestWhatMoved:
    def test_query_that_broke_comes_first_with_what_was_changed(self, policy: Policy) -> None:
        save(policy, "message", "message_0")
        save(policy, "send message", "send_message")
        run(policy)
        hide(policy, "slack/message_*")
        run(policy)
        found = selectors.read_set(policy)
        assert found.previous is not None
        assert [row.saved.query for row in found.rows] == ["send message", "message"]
        broken = found.rows[0]
        assert (broken.passed, broken.trend) == (False, ResultTrend.BROKE)
        assert (broken.expected[0].place, broken.expected[0].before) == (None, 1)
        assert broken.last_passed_at == found.previous.at
        assert found.recall_points == -50.0
        assert [row.change.name for row in found.changes] == ["default"]
        assert (found.failing, found.broke, found.mended) == (1, 1, 0)

    def test_mended_query_is_told_too(self, policy: Policy) -> None:
        hide(policy, "slack/message_*")
        save(policy, "send message", "send_message")
        run(policy)
        hide(policy, "slack/*")
        run(policy)
        found = selectors.read_set(policy)
        assert [row.trend for row in found.rows] == [ResultTrend.MENDED]

    def test_query_saved_since_is_new(self, policy: Policy) -> None:
        save(policy, "send message", "send_message")
        run(policy)
        hide(policy, "slack/*")
        save(policy, "message", "message_0")
        run(policy)
        trend = {row.saved.query: row.trend for row in selectors.read_set(policy).rows}
        assert trend == {"message": ResultTrend.NEW, "send message": ResultTrend.NONE}

    def test_change_of_another_policy_is_not_to_blame(self, policy: Policy) -> None:
        other = make_policy(slug="other")
        save(policy, "send message", "send_message")
        run(policy)
        hide(other, "x")
        hide(policy, "slack/message_*")
        run(policy)
        assert [row.change.name for row in selectors.read_set(policy).changes] == ["default"]

    def test_results_are_stale_from_the_change_until_the_next_run(self, policy: Policy) -> None:
        save(policy, "send message", "send_message")
        assert selectors.read_set(policy).is_stale
        run(policy)
        assert not selectors.read_set(policy).is_stale
        policies.change_policy(policy=policy, changed={"ranker": "overlap"}, actor=COMMAND_LINE)
        policy.refresh_from_db()
        assert selectors.read_set(policy).is_stale

    def test_sums_are_over_all_policies(self, policy: Policy) -> None:
        other = make_policy(slug="other", visible=["nothing"])
        derived_state.bring_up_to_date()
        for one in (policy, other):
            save(one, "send message", "send_message")
            run(one)
        counts = selectors.count_saved()
        assert (counts.queries, counts.failing) == (2, 1)
        assert [(one.slug, one.failing) for one in selectors.sets_in_brief()] == [
            ("default", 0),
            ("other", 1),
        ]
