"""Many tools are changed at once: in few queries, with one record, and all of it can be taken back."""

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from catalog.access.actors import COMMAND_LINE, Actor
from catalog.access.roles import Role
from catalog.domain.choices import Loading, ReadOnly
from catalog.domain.definitions import Definition
from catalog.domain.errors import Conflict, InvalidInput, NotAllowed
from catalog.models import Change, Decision, Job, Tool, ToolTag
from catalog.services import bulk, decisions, undo
from catalog.services.bulk import BulkEdit
from catalog.services.tools import store_definitions
from tests.harness.rows import make_server

pytestmark = pytest.mark.django_db


def make_tools(count: int = 4) -> list[int]:
    definitions = [Definition(name=f"tool_{number:04}") for number in range(count)]
    store_definitions(server=make_server(), definitions=definitions, now=timezone.now())
    return list(Tool.objects.values_list("pk", flat=True))


def change(ids: list[int], **values: object) -> Change | None:
    return bulk.change_tools(tool_ids=ids, edit=BulkEdit(**values), actor=COMMAND_LINE)  # type: ignore[arg-type]


def settings() -> list[tuple[str, bool]]:
    return list(Tool.objects.order_by("pk").values_list("loading", "hidden"))


def tags() -> set[tuple[int, str]]:
    return set(ToolTag.objects.values_list("tool_id", "name"))


def test_sets_what_is_given_on_those_that_differ() -> None:
    ids = make_tools()
    Tool.objects.filter(pk=ids[0]).update(loading="always")
    record = change(ids[:3], loading=Loading.ALWAYS, hidden=True)
    assert settings() == [("always", True)] * 3 + [("inherit", False)]
    assert record is not None
    assert record.name == "3 tools"
    assert record.before == {"loading": {"inherit": ids[1:3]}, "hidden": {"no": ids[:3]}}
    assert record.after == {"loading": {"always": ids[1:3]}, "hidden": {"yes": ids[:3]}}


def test_decisions_follow() -> None:
    ids = make_tools()
    decisions.bring_up_to_date()
    change(ids[:2], loading=Loading.ALWAYS)
    assert Job.objects.get().kind == "decide"
    decisions.bring_up_to_date()
    assert Decision.objects.filter(outcome="load").count() == 2


def test_nothing_different_is_no_record() -> None:
    ids = make_tools()
    assert change(ids, loading=Loading.INHERIT, hidden=False, remove_tags=("x",)) is None
    assert change(ids) is None
    assert not Change.objects.exists()


def test_tags_come_and_go() -> None:
    ids = make_tools()
    change(ids[:2], add_tags=("docs", " two  words "))
    change(ids[1:], add_tags=("docs",), remove_tags=("two words",))
    assert tags() == {(ids[0], "two words"), *((tool_id, "docs") for tool_id in ids)}
    assert not Job.objects.exists()


def test_undo_gives_each_tool_back_what_it_had() -> None:
    ids = make_tools()
    Tool.objects.filter(pk=ids[0]).update(loading="always", hidden=True)
    ToolTag.objects.create(tool_id=ids[1], name="docs")
    before, tags_before = settings(), tags()
    record = change(ids, loading=Loading.DEFER, hidden=True, add_tags=("docs", "new"))
    assert record is not None
    assert undo.can_undo(record)
    undo.undo_change(change=record, actor=COMMAND_LINE)
    assert (settings(), tags()) == (before, tags_before)


def test_undo_leaves_alone_what_changed_since() -> None:
    ids = make_tools()
    record = change(ids, loading=Loading.DEFER)
    assert record is not None
    Tool.objects.filter(pk=ids[0]).update(loading="always")
    Tool.objects.filter(pk=ids[1]).delete()
    assert undo.undo_change(change=record, actor=COMMAND_LINE) == "2 tools"
    assert [loading for loading, _ in settings()] == ["always", "inherit", "inherit"]
    with pytest.raises(Conflict, match="has changed since"):
        undo.undo_change(change=record, actor=COMMAND_LINE)


@pytest.mark.parametrize("tag", ["x" * 41, "bell\x07", ",".join("abc") + "\u200b"])
def test_tag_that_cannot_be_is_refused(tag: str) -> None:
    ids = make_tools()
    with pytest.raises(InvalidInput):
        change(ids, add_tags=(tag,), loading=Loading.DEFER)
    assert settings() == [("inherit", False)] * 4


def test_at_most_twenty_tags() -> None:
    with pytest.raises(InvalidInput, match="at most 20"):
        change(make_tools(), add_tags=tuple(map(str, range(21))))


def test_viewer_may_not() -> None:
    with pytest.raises(NotAllowed):
        bulk.change_tools(
            tool_ids=make_tools(),
            edit=BulkEdit(hidden=True),
            actor=Actor(label="v", role=Role.VIEWER),
        )


@pytest.mark.parametrize("count", [10, 400])
def test_queries_do_not_grow_with_the_tools(
    count: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    ids = make_tools(count)
    with django_assert_num_queries(18):
        change(ids, loading=Loading.DEFER, hidden=True, add_tags=("docs",))


def test_read_only_marks_are_set_and_taken_back_by_admins() -> None:
    ids = make_tools()
    Tool.objects.filter(pk=ids[0]).update(read_only=False)
    editor = Actor(label="editor", role=Role.EDITOR)
    with pytest.raises(NotAllowed):
        bulk.change_tools(tool_ids=ids, edit=BulkEdit(read_only=ReadOnly.YES), actor=editor)
    record = change(ids, read_only=ReadOnly.YES)
    assert record is not None
    assert record.before == {"read_only": {"no": ids[:1], "inherit": ids[1:]}}
    assert set(Tool.objects.values_list("read_only", flat=True)) == {True}
    assert not undo.can_undo(record, Role.EDITOR)
    undo.undo_change(change=record, actor=COMMAND_LINE)
    assert list(Tool.objects.order_by("pk").values_list("read_only", flat=True)) == [False, None, None, None]
