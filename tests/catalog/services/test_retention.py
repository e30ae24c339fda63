"""What is kept of a server is limited in days, rows and bytes; what is referred to is kept."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from catalog.domain.definitions import Definition
from catalog.domain.limits import RUNS_OF_A_SERVER
from catalog.models import RefreshRun, SavedQuery, Server, Tool, ToolRevision
from catalog.models.changes import Subject
from catalog.services import decisions, retention, tools
from sessions.models import LoadedTool
from tests.harness.rows import make_change, make_policy, make_run, make_server, make_session, make_tool

pytestmark = pytest.mark.django_db

NOW = timezone.now()
LONG_AGO = NOW - timedelta(days=31)


def store(server: Server, *definitions: Definition, now: datetime = NOW) -> None:
    tools.store_definitions(server=server, definitions=definitions, now=now)


def leave_behind(*names: str, at: datetime = LONG_AGO, server: Server | None = None) -> Server:
    """A server whose tools of these names are gone since then."""
    server = server or make_server()
    store(server, *(Definition(name=name) for name in names), now=at)
    store(server, now=at)
    return server


def left(server: Server) -> list[str]:
    return list(server.tools.order_by("name").values_list("name", flat=True))


def prune() -> None:
    retention.prune(now=NOW)


def set_keywords(tool: Tool) -> None:
    Tool.objects.filter(pk=tool.pk).update(keywords=["word"])


def hide(tool: Tool) -> None:
    Tool.objects.filter(pk=tool.pk).update(hidden=True)


def set_loading(tool: Tool) -> None:
    Tool.objects.filter(pk=tool.pk).update(loading="always")


def approve(tool: Tool) -> None:
    Tool.objects.filter(pk=tool.pk).update(approval="approved", approved_by="admin", approved_at=LONG_AGO)


def tag(tool: Tool) -> None:
    tool.tags.create(name="important")


def expect(tool: Tool) -> None:
    SavedQuery.objects.create(policy=make_policy(), query="q", expected=[tool.qualified_name])


def load(tool: Tool) -> None:
    LoadedTool.objects.create(
        session=make_session(), name=tool.qualified_name, position=1, loaded_turn=1, used_turn=1
    )


def change(tool: Tool) -> None:
    make_change(subject=Subject.TOOL, name=tool.qualified_name)


class TestGoneTools:
    def test_go_after_their_time(self) -> None:
        server = leave_behind("old")
        leave_behind("recent", at=NOW - timedelta(days=29), server=server)
        store(server, Definition(name="listed"))
        prune()
        assert left(server) == ["listed", "recent"]

    def test_take_their_revisions_along(self) -> None:
        leave_behind("old")
        prune()
        assert not ToolRevision.objects.exists()

    @pytest.mark.parametrize(
        "refer",
        [set_keywords, hide, set_loading, approve, tag, expect, load, change],
        ids=lambda one: one.__name__,
    )
    def test_stay_while_something_refers_to_them(self, refer: Callable[[Tool], None]) -> None:
        server = leave_behind("kept", "other")
        refer(Tool.objects.get(name="kept"))
        prune()
        assert left(server) == ["kept"]

    def test_stay_until_the_decisions_have_followed(self) -> None:
        server = make_server()
        store(server, Definition(name="a"), now=LONG_AGO)
        decisions.bring_up_to_date()
        store(server, now=LONG_AGO)
        prune()
        assert left(server) == ["a"]
        decisions.bring_up_to_date()
        prune()
        assert left(server) == []

    def test_past_the_limit_the_longest_gone_go_first(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(retention, "GONE_TOOLS_OF_A_SERVER", 3)
        server = leave_behind("a", "b", at=NOW - timedelta(hours=2))
        leave_behind("c", "d", at=NOW - timedelta(hours=1), server=server)
        leave_behind("e", at=NOW, server=server)
        other = leave_behind("f", at=NOW)
        prune()
        assert left(server) == ["c", "d", "e"]
        assert left(other) == ["f"]

    def test_are_bounded_in_bytes_too(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(retention, "GONE_TOOLS_OF_A_SERVER_BYTES", 10_000)
        server = make_server()
        # Not what a size counts, but what is stored.
        large = {"x": "y" * 6_000}
        store(server, Definition(name="a", meta=large), now=NOW - timedelta(hours=1))
        store(server, Definition(name="b", meta=large), now=NOW - timedelta(minutes=30))
        store(server)
        prune()
        assert left(server) == ["b"]

    def test_names_at_every_refresh_leave_a_bounded_number(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(retention, "GONE_TOOLS_OF_A_SERVER", 10)
        server = make_server()
        for turn in range(6):
            at = NOW + timedelta(seconds=turn)
            store(server, *(Definition(name=f"t{turn}_{number}") for number in range(20)), now=at)
            retention.prune_server(server_id=server.pk, now=at)
        assert server.tools.count() == 20 + 10


def test_sizes_are_counted_in_bytes() -> None:
    text = "Größe 😀"
    make_tool(description=text)
    sizes = Tool.objects.annotate(size_bytes=retention.ByteLength("description"))
    assert list(sizes.values_list("size_bytes", flat=True)) == [len(text.encode())]


class TestRevisions:
    def test_characters_of_several_bytes_count_as_such(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(retention, "OLD_REVISIONS_OF_A_SERVER_BYTES", 2_500)
        server = make_server()
        for turn in range(4):
            definition = Definition(name="a", description=f"{turn} {'😀' * 500}")
            store(server, definition, now=NOW + timedelta(seconds=turn))
        prune()
        assert ToolRevision.objects.count() < 4

    def test_of_a_tool_that_changes_every_time_are_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(retention, "REVISIONS_OF_A_TOOL", 5)
        server = make_server()
        for turn in range(20):
            definition = Definition(name="a", description="this" if turn % 2 else "that")
            store(server, definition, now=NOW + timedelta(seconds=turn))
        prune()
        numbers = list(ToolRevision.objects.order_by("-number").values_list("number", flat=True))
        assert numbers == [20, 19, 18, 17, 16]
        store(server, Definition(name="a", description="other"))
        assert ToolRevision.objects.order_by("-number")[0].number == 21

    def test_of_a_server_are_bounded_in_bytes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(retention, "OLD_REVISIONS_OF_A_SERVER_BYTES", 20_000)
        server = make_server()
        for turn in range(10):
            definition = Definition(name="a", description=f"{turn}", meta={"x": "y" * 6_000})
            store(server, definition, now=NOW + timedelta(seconds=turn))
        prune()
        kept = list(ToolRevision.objects.order_by("number").values_list("number", flat=True))
        assert kept == [1, 7, 8, 9, 10]  # the first is what changes are measured from


class TestRuns:
    def test_are_bounded_in_number(self) -> None:
        server = make_server()
        runs = [make_run(server=server) for _ in range(RUNS_OF_A_SERVER + 5)]
        prune()
        assert RefreshRun.objects.count() == RUNS_OF_A_SERVER
        assert not RefreshRun.objects.filter(pk__in=[run.pk for run in runs[:5]]).exists()

    def test_go_after_their_time_but_for_the_last(self) -> None:
        server = make_server()
        for days in (200, 100):
            at = NOW - timedelta(days=days)
            make_run(server=server, started_at=at, finished_at=at)
        prune()
        assert RefreshRun.objects.get().finished_at == NOW - timedelta(days=100)
