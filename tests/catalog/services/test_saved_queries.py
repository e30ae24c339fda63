"""Saving a query with the tools it should find, and taking it back."""

import pytest

from catalog.access.actors import COMMAND_LINE, Actor
from catalog.access.roles import Role
from catalog.domain.errors import Conflict, InvalidInput, NotAllowed
from catalog.models import Change, Policy, SavedQuery, Server
from catalog.services import saved_queries, undo
from tests.harness.rows import make_policy, make_server, make_tool

pytestmark = pytest.mark.django_db

VIEWER = Actor(label="reader", role=Role.VIEWER)


@pytest.fixture(autouse=True)
def catalog() -> None:
    for server in ("github", "jira"):
        make_tool(server=make_server(name=server), name="create_issue")
    make_tool(server=make_server(name="slack"), name="send_message")


def save(query: str = "send", *expected: str, policy: Policy | None = None) -> SavedQuery:
    return saved_queries.save_query(
        policy=policy or Policy.objects.get(slug="default"),
        query=query,
        expected=expected or ["send_message"],
        actor=COMMAND_LINE,
    )


class TestSaving:
    def test_keeps_qualified_names_each_once_in_order(self) -> None:
        saved = save("open", "mcp__jira__create_issue", " send_message ", "mcp__slack__send_message")
        assert saved.expected == ["mcp__jira__create_issue", "mcp__slack__send_message"]

    def test_own_name_of_several_tools_must_be_told_apart(self) -> None:
        with pytest.raises(
            InvalidInput, match="mcp__github__create_issue, mcp__jira__create_issue: say which"
        ):
            save("open", "create_issue")

    @pytest.mark.parametrize(
        ("query", "expected", "problem"),
        [
            ("  ", ["send_message"], "at least one word"),
            ("x" * 501, ["send_message"], "at most 500"),
            ("select:", ["send_message"], "at least one tool name"),
            ("send", ["", " "], "from 1 to 10 tools"),
            ("send", [f"tool_{number}" for number in range(11)], "from 1 to 10 tools"),
            ("send", ["nowhere"], "there is no tool nowhere"),
        ],
    )
    def test_what_cannot_be_searched_or_found_is_refused(
        self, query: str, expected: list[str], problem: str
    ) -> None:
        with pytest.raises(InvalidInput, match=problem):
            save(query, *expected)
        assert not SavedQuery.objects.exists()

    def test_same_query_again_changes_what_it_should_find(self) -> None:
        first = save("send")
        second = save(" send ", "mcp__jira__create_issue")
        assert (second.pk, second.expected) == (first.pk, ["mcp__jira__create_issue"])
        change = Change.objects.all()[0]
        assert (change.subject, change.action, change.name) == ("query", "changed", "send")
        assert change.before == {"expected": ["mcp__slack__send_message"]}

    def test_saving_what_is_saved_leaves_no_record(self) -> None:
        save("send")
        save("send")
        assert Change.objects.filter(subject="query").count() == 1

    def test_each_policy_has_its_own(self) -> None:
        save("send")
        save("send", policy=make_policy(slug="other"))
        assert SavedQuery.objects.count() == 2

    def test_a_policy_has_so_many_at_most(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(saved_queries, "MOST_SAVED", 1)
        save("send")
        save("send", "mcp__jira__create_issue")
        with pytest.raises(Conflict, match="at most 1"):
            save("write")


class TestDeleting:
    def test_is_recorded_and_can_be_undone(self) -> None:
        change = saved_queries.delete_query(saved=save("send"), actor=COMMAND_LINE)
        assert not SavedQuery.objects.exists()
        assert undo.can_undo(change)
        undo.undo_change(change=change, actor=COMMAND_LINE)
        assert SavedQuery.objects.get().expected == ["mcp__slack__send_message"]

    def test_is_not_undone_over_a_newer_one(self) -> None:
        change = saved_queries.delete_query(saved=save("send"), actor=COMMAND_LINE)
        save("send", "mcp__jira__create_issue")
        with pytest.raises(Conflict, match="saved again"):
            undo.undo_change(change=change, actor=COMMAND_LINE)

    def test_is_not_undone_where_its_policy_went_away(self) -> None:
        policy = make_policy(slug="other")
        change = saved_queries.delete_query(saved=save("send", policy=policy), actor=COMMAND_LINE)
        policy.delete()
        with pytest.raises(Conflict, match="no policy other"):
            undo.undo_change(change=change, actor=COMMAND_LINE)

    def test_is_not_undone_where_its_tool_went_away(self) -> None:
        change = saved_queries.delete_query(saved=save("send"), actor=COMMAND_LINE)
        Server.objects.get(name="slack").delete()
        with pytest.raises(Conflict, match="no tool mcp__slack__send_message"):
            undo.undo_change(change=change, actor=COMMAND_LINE)

    def test_creation_cannot_be_undone(self) -> None:
        save("send")
        assert not undo.can_undo(Change.objects.all()[0])


def test_viewer_may_neither_save_nor_delete() -> None:
    saved = save("send")
    with pytest.raises(NotAllowed):
        saved_queries.save_query(policy=saved.policy, query="x", expected=["send_message"], actor=VIEWER)
    with pytest.raises(NotAllowed):
        saved_queries.delete_query(saved=saved, actor=VIEWER)
    assert SavedQuery.objects.count() == 1
