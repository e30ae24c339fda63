"""A session's timeline and the course of its tokens."""

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from sessions.models import AgentSession, EventKind, Outcome, SearchEvent, SessionEvent
from sessions.reading import token_course
from sessions.reading.timeline import Timeline, read_timeline
from sessions.reading.token_course import Point, read_course
from tests.rows import make_session

pytestmark = pytest.mark.django_db

NOW = timezone.now()


def add_event(session: AgentSession, seconds: int, *, turn: int = 0, sent: int = 10, full: int = 100) -> None:
    at = NOW + timedelta(seconds=seconds)
    kind = EventKind.TURN
    SessionEvent.objects.create(
        session=session, at=at, kind=kind, turn=turn, tokens_sent=sent, tokens_full=full
    )


def add_search(session: AgentSession, seconds: int, *, turn: int = 0) -> None:
    at = NOW + timedelta(seconds=seconds)
    SearchEvent.objects.create(
        session=session, at=at, turn=turn, query="q", form="keywords", outcome=Outcome.MATCHED, took_us=1
    )


def moments_of(timeline: Timeline) -> list[tuple[int, list[int]]]:
    """Each turn with the seconds of its moments."""
    return [(turn.number, [_seconds(moment.at) for moment in turn.moments]) for turn in timeline.turns]


def _seconds(at: datetime) -> int:
    return round((at - NOW).total_seconds())


class TestTimeline:
    def test_events_and_searches_stand_together_the_latest_first(self) -> None:
        session, other = make_session(), make_session()
        add_event(session, 1)
        add_search(session, 2)
        add_event(session, 3, turn=1)
        add_search(session, 4, turn=1)
        add_search(other, 5)
        timeline = read_timeline(session)
        assert moments_of(timeline) == [(1, [4, 3]), (0, [2, 1])]
        assert timeline.older is None
        assert timeline.turns[0].moments[0].search is not None
        assert timeline.turns[0].moments[1].event is not None

    def test_older_part_goes_on_where_the_first_ended(self) -> None:
        session = make_session()
        for seconds in range(0, 10, 2):
            add_event(session, seconds)
            add_search(session, seconds + 1)
        first = read_timeline(session, most=4)
        assert moments_of(first) == [(0, [9, 8, 7, 6])]
        second = read_timeline(session, most=4, before=first.older)
        third = read_timeline(session, most=4, before=second.older)
        assert moments_of(second) == [(0, [5, 4, 3, 2])]
        assert moments_of(third) == [(0, [1, 0])]
        assert third.older is None

    def test_nothing_recorded_is_an_empty_timeline(self) -> None:
        assert read_timeline(make_session()) == Timeline([], None)


class TestTokenCourse:
    def test_each_turn_has_the_last_that_is_known_and_the_present_ends_it(self) -> None:
        session = make_session(turn=2)
        add_event(session, 1, turn=0, sent=10)
        add_event(session, 2, turn=0, sent=30)
        add_event(session, 3, turn=1, sent=40)
        course = read_course(session, {"sent": 50, "full": 200})
        assert course.points == [Point(0, 30, 100), Point(1, 40, 100), Point(2, 50, 200)]
        assert (course.turns, course.sent, course.full, course.saved) == (3, 120, 400, 280)
        assert course.saved_share == 0.7

    def test_session_without_events_has_its_present(self) -> None:
        course = read_course(make_session(), {"sent": 0, "full": 0})
        assert course.points == [Point(0, 0, 0)]
        assert course.saved_share == 0

    def test_very_many_turns_are_thinned_out_but_summed_whole(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(token_course, "MOST_POINTS", 3)
        session = make_session(turn=7)
        for turn in range(7):
            add_event(session, turn, turn=turn, sent=turn)
        course = read_course(session, {"sent": 7, "full": 100})
        assert [point.turn for point in course.points] == [1, 4, 7]
        assert (course.turns, course.sent) == (8, 28)
