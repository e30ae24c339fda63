"""Session events: what is recorded of each change, when, and for how long."""

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, transaction
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from catalog.models import Policy
from sessions.models import (
    ActivityHour,
    AgentSession,
    EventKind,
    SearchEvent,
    SearchEventOutcome,
    SessionEvent,
)
from sessions.services import events, eviction, lifecycle, write_behind
from tests.harness.rows import make_event, make_search, make_session
from tests.sessions.api.calling import Agent, Conversation, fill_catalog, make_agent
from tests.sessions.conftest import Recording

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent() -> Agent:
    fill_catalog()
    return make_agent()


@pytest.fixture
def talk(agent: Agent, recording: Recording) -> Conversation:
    with recording():
        return agent.begin(external_id="chat")


def events_of(talk: Conversation) -> list[SessionEvent]:
    return list(SessionEvent.objects.filter(session=uuid.UUID(talk.id)).order_by("at", "pk"))


def last_event(talk: Conversation) -> SessionEvent:
    return events_of(talk)[-1]


class TestWhatIsTold:
    def test_beginning_has_the_cost_of_the_first_list(self, talk: Conversation) -> None:
        (began,) = events_of(talk)
        tokens = talk.state()["tokens"]
        assert (began.kind, began.turn) == (EventKind.BEGAN, 0)
        assert (began.tokens_sent, began.tokens_full) == (tokens["sent"], tokens["full"])

    def test_load_names_its_tools_and_comes_after_its_search(
        self, talk: Conversation, recording: Recording
    ) -> None:
        with recording():
            talk.search("create issue")
        loaded, search = last_event(talk), SearchEvent.objects.get()
        assert loaded.kind == EventKind.LOADED
        assert loaded.loaded == [tool["name"] for tool in talk.state()["loaded"]]
        assert loaded.loaded_count == len(loaded.loaded) > 0
        assert loaded.tokens_sent == talk.state()["tokens"]["sent"]
        assert search.at < loaded.at

    def test_search_that_loads_nothing_new_is_no_event(
        self, talk: Conversation, recording: Recording
    ) -> None:
        with recording():
            talk.search("create issue")
        before = len(events_of(talk))
        with recording():
            talk.search("create issue")
            talk.do("unload", names=["never_loaded"])
        assert len(events_of(talk)) == before

    def test_turn_tells_what_it_unloaded_and_the_context(
        self, talk: Conversation, recording: Recording
    ) -> None:
        Policy.objects.update(keep_loaded_tools=False)
        with recording():
            talk.search("create issue")
            talk.do("turns", context_used=1234)
        turn = last_event(talk)
        assert (turn.kind, turn.turn, turn.context_used) == (EventKind.TURN, 1, 1234)
        assert turn.unloaded_count == len(turn.unloaded) > 0
        assert turn.tokens_sent < events_of(talk)[-2].tokens_sent

    @pytest.mark.parametrize(
        ("what", "kind"),
        [("unload", EventKind.UNLOADED), ("reset", EventKind.RESET), ("compact", "compacted")],
    )
    def test_each_change_has_its_kind(
        self, talk: Conversation, recording: Recording, what: str, kind: str
    ) -> None:
        with recording():
            names = talk.search("create issue")["loaded"]
            talk.do(what, **({"names": names} if what == "unload" else {}))
        assert last_event(talk).kind == kind

    def test_snapshot_and_restore_tell_of_its_turn(self, talk: Conversation, recording: Recording) -> None:
        with recording():
            talk.search("create issue")
            talk.do("turns")
            snapshot = talk.snapshot()
            talk.do("turns")
            talk.do("reset")
            talk.do("restore", snapshot=snapshot["id"])
        kinds = [(event.kind, event.snapshot_turn) for event in events_of(talk)]
        assert ("snapshot", 1) in kinds
        assert kinds[-1] == ("restored", 1)
        assert last_event(talk).loaded == snapshot["loaded"]

    def test_compaction_is_one_event(self, talk: Conversation, recording: Recording) -> None:
        with recording():
            talk.do("compact")
        assert [event.kind for event in events_of(talk)] == ["began", "compacted"]

    def test_many_names_are_counted_and_cut(
        self, talk: Conversation, recording: Recording, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(events, "MOST_NAMES", 1)
        with recording():
            talk.search("issue")
        loaded = last_event(talk)
        assert (len(loaded.loaded), loaded.loaded_count) == (1, 2)


class TestWhenItIsWritten:
    def test_change_that_is_taken_back_never_happened(self, talk: Conversation, recording: Recording) -> None:
        session = AgentSession.objects.get()
        with recording(), pytest.raises(RuntimeError):
            _reset_and_fail(session)
        assert [event.kind for event in events_of(talk)] == ["began"]

    def test_change_itself_writes_no_record(
        self, talk: Conversation, recording: Recording, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        """A turn costs what it cost before there were events: they are written behind its back."""
        session = AgentSession.objects.get()
        lifecycle.end_turn(session=session)
        with recording(), django_assert_num_queries(6):
            lifecycle.end_turn(session=session)

    def test_session_that_went_away_takes_its_notes_along(
        self, talk: Conversation, recording: Recording
    ) -> None:
        with recording():
            talk.do("reset")
            AgentSession.objects.all().delete()
        assert not SessionEvent.objects.exists()

    def test_poll_neither_writes_nor_notes_an_event(self, talk: Conversation, recording: Recording) -> None:
        with recording():
            talk.tools()
        assert [event.kind for event in events_of(talk)] == ["began"]


class TestForHowLong:
    def test_busy_session_keeps_its_latest(
        self, talk: Conversation, recording: Recording, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(events, "KEPT_EVENTS", 3)
        monkeypatch.setattr(events, "TRIM_EVERY", 1)
        with recording():
            for _ in range(6):
                talk.do("turns")
        assert [event.turn for event in events_of(talk)] == [4, 5, 6]

    def test_busy_session_keeps_its_latest_searches(
        self, talk: Conversation, recording: Recording, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(events, "KEPT_SEARCHES", 2)
        monkeypatch.setattr(events, "TRIM_EVERY", 1)
        other = make_search(make_session())
        for query in ("issue", "message", "file"):
            with recording():
                talk.search(query)
        kept = SearchEvent.objects.order_by("at").exclude(pk=other.pk)
        assert [search.query for search in kept] == ["message", "file"]
        assert SearchEvent.objects.filter(pk=other.pk).exists()

    def test_searches_are_cut_also_where_each_comes_with_an_event(
        self, talk: Conversation, recording: Recording, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(events, "KEPT_SEARCHES", 2)
        monkeypatch.setattr(events, "TRIM_EVERY", 2)
        for number in range(8):
            with recording():
                talk.search("issue" if number % 2 else "file")
                talk.do("turns")
        assert SearchEvent.objects.count() <= 3

    def test_old_ones_go_with_the_searches(self, settings: Any) -> None:
        settings.KEEP_SEARCHES_DAYS = 7
        session, now = make_session(), timezone.now()
        old = now - timedelta(days=8)
        for at in (old, now):
            make_event(session, at=at)
            ActivityHour.objects.create(hour=at)
        assert eviction.prune_events(now=now) == 1
        assert [event.at for event in session.events.all()] == [now]
        assert [row.hour for row in ActivityHour.objects.all()] == [now]


class TestActivity:
    def test_hours_count_sessions_searches_and_misses(self, agent: Agent, recording: Recording) -> None:
        for _ in range(2):
            with recording():
                talk = agent.begin()
                talk.search("create issue")
                talk.search("zzzz")
        hours = ActivityHour.objects.all()
        assert sum(hour.sessions for hour in hours) == 2
        assert sum(hour.searches for hour in hours) == 4
        assert sum(hour.misses for hour in hours) == 2

    def test_same_session_again_is_not_counted_twice(self, agent: Agent, recording: Recording) -> None:
        with recording():
            agent.post("/sessions", {"external_id": "one"}, status=201)
            agent.post("/sessions", {"external_id": "one"}, status=200)
        assert [hour.sessions for hour in ActivityHour.objects.all()] == [1]


@transaction.atomic
def _reset_and_fail(session: AgentSession) -> None:
    lifecycle.reset(session=session)
    raise RuntimeError


def test_searches_that_could_not_be_written_are_written_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may have used their numbers meanwhile."""
    session = make_session()
    write_behind.enqueue_search(
        events.PendingSearch(
            session_id=session.pk,
            at=timezone.now(),
            turn=0,
            query="q",
            form="keywords",
            outcome=SearchEventOutcome.MATCHED,
            hits=[],
            tokens_loaded=0,
            took_us=1,
        )
    )
    with monkeypatch.context() as full:
        full.setattr(events, "write_events", _refuse)
        with pytest.raises(OperationalError), transaction.atomic():
            write_behind.flush()
    others = [make_search(session, query="of another process") for _ in range(3)]
    write_behind.flush()
    assert SearchEvent.objects.count() == len(others) + 1


def _refuse(_measured: object) -> None:
    raise OperationalError("database or disk is full")
