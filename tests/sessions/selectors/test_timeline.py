"""A session's timeline and its tokens by turn."""

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from sessions.models import AgentSession, EventKind, SearchEvent, SearchEventOutcome, SessionEvent
from sessions.selectors import token_history
from sessions.selectors.timeline import Place, Timeline, read_place, read_timeline
from sessions.selectors.token_history import TurnTokens, read_token_history
from tests.harness.rows import make_session

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
        session=session,
        at=at,
        turn=turn,
        query="q",
        form="keywords",
        outcome=SearchEventOutcome.MATCHED,
        took_us=1,
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

    def test_no_moment_of_one_instant_is_lost_between_two_parts(self) -> None:
        session = make_session()
        for _ in range(5):
            add_event(session, 1)
            add_search(session, 1)
        add_event(session, 0)
        shown: list[tuple[bool, int]] = []
        place: Place | None = None
        for _ in range(4):
            part = read_timeline(session, most=3, before=place)
            moments = [moment for turn in part.turns for moment in turn.moments]
            shown += [(moment.place.is_event, moment.place.pk) for moment in moments]
            place = read_place(part.older.cursor) if part.older else None
        assert place is None
        events = list(session.events.order_by("-at", "-pk").values_list("pk", flat=True))
        searches = list(session.searches.order_by("-pk").values_list("pk", flat=True))
        # What a search loaded comes after it, and so before it in a list that has the latest first.
        of_events, of_searches = [(True, pk) for pk in events], [(False, pk) for pk in searches]
        assert shown == [*of_events[:-1], *of_searches, of_events[-1]]

    def test_nothing_recorded_is_an_empty_timeline(self) -> None:
        assert read_timeline(make_session()) == Timeline([], None)


class TestTokenCourse:
    def test_each_turn_has_the_last_that_is_known_and_the_present_ends_it(self) -> None:
        session = make_session(turn=2)
        add_event(session, 1, turn=0, sent=10)
        add_event(session, 2, turn=0, sent=30)
        add_event(session, 3, turn=1, sent=40)
        history = read_token_history(session, {"sent": 50, "full": 200})
        assert history.points == [TurnTokens(0, 30, 100), TurnTokens(1, 40, 100), TurnTokens(2, 50, 200)]
        assert (history.turns, history.sent, history.full, history.saved) == (3, 120, 400, 280)
        assert history.saved_share == 0.7

    def test_session_without_events_has_its_present(self) -> None:
        history = read_token_history(make_session(), {"sent": 0, "full": 0})
        assert history.points == [TurnTokens(0, 0, 0)]
        assert history.saved_share == 0

    def test_very_many_turns_are_thinned_out_but_summed_whole(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(token_history, "MOST_POINTS", 3)
        session = make_session(turn=7)
        for turn in range(7):
            add_event(session, turn, turn=turn, sent=turn)
        history = read_token_history(session, {"sent": 7, "full": 100})
        assert [point.turn for point in history.points] == [1, 4, 7]
        assert (history.turns, history.sent) == (8, 28)
