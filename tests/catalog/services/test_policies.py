"""Every save of a policy keeps the one before it, and any of them can come back."""

import pytest

from catalog.access.actors import COMMAND_LINE, Actor
from catalog.access.roles import Role
from catalog.domain.errors import Conflict, InvalidInput, NotAllowed, NotFound
from catalog.domain.policy import DEFAULT_MEANING_FLOOR
from catalog.models import Change, DecidedList, Decision, Job, Policy, PolicyVersion
from catalog.selectors.decisions import count_behind
from catalog.selectors.facts import read_policy
from catalog.services import decisions, keys, policies, undo
from tests.harness.rows import make_tool

pytestmark = pytest.mark.django_db


def change(**changed: object) -> Change | None:
    return policies.change_policy(policy=default(), changed=changed, actor=COMMAND_LINE)


def default() -> Policy:
    return Policy.objects.get(slug="default")


class TestChange:
    def test_keeps_the_version_before_and_says_who(self) -> None:
        assert change(mode="auto", threshold=5000)
        first, second = PolicyVersion.objects.order_by("number")
        assert (first.fields["mode"], first.actor) == ("always", "toolsearch")
        assert (second.fields["mode"], second.actor) == ("auto", "command line")
        assert default().version == 2
        record = Change.objects.get()
        assert (record.before, record.after) == (
            {"mode": "always", "threshold": None},
            {"mode": "auto", "threshold": 5000},
        )

    def test_meaning_floor_is_on_record_and_can_be_undone(self) -> None:
        made = change(meaningFloor=0.5)
        assert made
        assert (made.before, made.after) == (
            {"meaning_floor": DEFAULT_MEANING_FLOOR},
            {"meaning_floor": 0.5},
        )
        undo.undo_change(change=made, actor=COMMAND_LINE)
        assert default().meaning_floor == DEFAULT_MEANING_FLOOR

    def test_asks_for_the_decisions_to_follow(self) -> None:
        change(mode="off")
        assert Job.objects.get().kind == "decide"

    def test_what_the_gateway_alone_reads_decides_nothing_anew(self) -> None:
        make_tool()
        decisions.bring_up_to_date()
        before = DecidedList.objects.values().get()
        Decision.objects.update(reason="always_defer")  # which deciding anew would put right
        assert change(exposure="native", call_timeout_seconds=5, max_result_tokens=0, record_calls="full")
        assert default().version == 2
        assert DecidedList.objects.values().get() == {**before, "policy_version": 2}
        assert count_behind() == 0
        assert not Job.objects.exists()
        decisions.bring_up_to_date()
        assert Decision.objects.get().reason == "always_defer"

    def test_decisions_that_had_not_caught_up_still_do(self) -> None:
        make_tool()
        decisions.bring_up_to_date()
        change(mode="off")
        change(exposure="native")
        assert count_behind() == 1
        decisions.bring_up_to_date()
        assert Decision.objects.get().outcome == "load"

    def test_nothing_new_is_no_version(self) -> None:
        assert not change(mode="always")
        assert not PolicyVersion.objects.exists()
        assert default().version == 1

    def test_mistakes_are_all_named_and_change_nothing(self) -> None:
        with pytest.raises(InvalidInput) as caught:
            change(mode="sometimes", max_results=99)
        assert {problem.place for problem in caught.value.errors} == {"policy.mode", "policy.max_results"}
        assert default().mode == "always"

    def test_search_tool_cannot_take_a_tools_name(self) -> None:
        tool = make_tool()
        with pytest.raises(Conflict, match="needs one of its own"):
            change(search_tool_name=tool.qualified_name)

    def test_slug_stays(self) -> None:
        with pytest.raises(InvalidInput, match="cannot be changed"):
            change(slug="other")

    def test_viewers_may_not(self) -> None:
        viewer = Actor(label="viewer", role=Role.VIEWER)
        with pytest.raises(NotAllowed):
            policies.change_policy(policy=default(), changed={"mode": "off"}, actor=viewer)


class TestRollBack:
    def test_brings_a_version_back_as_a_new_one(self) -> None:
        before = read_policy(default())
        change(mode="auto", never_defer=["a*"], visible=["b*"])
        policies.roll_back(policy=default(), number=1, actor=COMMAND_LINE)
        assert read_policy(default()) == before
        assert list(PolicyVersion.objects.values_list("number", flat=True)) == [3, 2, 1]

    def test_version_that_never_was(self) -> None:
        with pytest.raises(NotFound):
            policies.roll_back(policy=default(), number=9, actor=COMMAND_LINE)


class TestCreateAndDelete:
    def test_new_policy_has_the_defaults_and_a_first_version(self) -> None:
        row = policies.create_policy(wanted={"slug": "lean", "mode": "auto"}, actor=COMMAND_LINE)
        assert (row.mode, row.max_results, row.version) == ("auto", 5, 1)
        assert row.versions.get().fields["slug"] == "lean"

    def test_taken_slug_is_a_conflict(self) -> None:
        with pytest.raises(Conflict):
            policies.create_policy(wanted={"slug": "default"}, actor=COMMAND_LINE)

    def test_default_stays_and_so_does_one_in_use(self) -> None:
        with pytest.raises(Conflict, match="default"):
            policies.delete_policy(policy=default(), actor=COMMAND_LINE)
        row = policies.create_policy(wanted={"slug": "lean"}, actor=COMMAND_LINE)
        made = keys.create_key(name="agent", actor=COMMAND_LINE, policy=row)
        with pytest.raises(Conflict, match="keys or sessions use"):
            policies.delete_policy(policy=row, actor=COMMAND_LINE)
        made.key.delete()
        policies.delete_policy(policy=row, actor=COMMAND_LINE)
        assert not Policy.objects.filter(slug="lean").exists()


class TestFieldsForAdmins:
    EDITOR = Actor(label="editor", role=Role.EDITOR)

    def test_editor_sets_all_of_the_gateway_but_what_is_recorded(self) -> None:
        changed = {"exposure": "native", "call_timeout_seconds": 60, "max_result_tokens": 100}
        assert policies.change_policy(policy=default(), changed=changed, actor=self.EDITOR)
        for field, value in (("record_calls", "full"), ("quarantine", "changed")):
            with pytest.raises(policies.FieldForAdmins) as caught:
                policies.change_policy(policy=default(), changed={field: value}, actor=self.EDITOR)
            assert caught.value.field == field
        assert default().record_calls == "names"

    def test_editor_can_neither_copy_nor_undo_nor_roll_back_full_records(self) -> None:
        change(record_calls="full")
        with pytest.raises(NotAllowed):
            policies.create_policy(wanted={"slug": "copy", "record_calls": "full"}, actor=self.EDITOR)
        assert not undo.can_undo(Change.objects.get(), Role.EDITOR)
        with pytest.raises(NotAllowed):
            policies.roll_back(policy=default(), number=1, actor=self.EDITOR)
        assert default().record_calls == "full"
        undo.undo_change(change=Change.objects.get(), actor=COMMAND_LINE)
        assert default().record_calls == "names"
