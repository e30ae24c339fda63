"""A session's timeline: events and searches, the latest first, by turn."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from django.db.models import Q
from django.utils.dateparse import parse_datetime

from catalog.console.cursors import read_cursor, write_cursor
from catalog.domain.errors import InvalidInput
from sessions.models import AgentSession, SearchEvent, SessionEvent

MOMENTS_SHOWN = 40
_EVENT, _SEARCH = "event", "search"


class Place(NamedTuple):
    """Where a moment is in the order of time: of one instant a search comes before what it loaded."""

    at: datetime
    is_event: bool
    pk: int

    @property
    def cursor(self) -> str:
        return write_cursor(self.at.isoformat(), _EVENT if self.is_event else _SEARCH, str(self.pk))


@dataclass(frozen=True, slots=True)
class TimelineItem:
    """Either an event or a search."""

    at: datetime
    turn: int
    event: SessionEvent | None = None
    search: SearchEvent | None = None

    @property
    def place(self) -> Place:
        row = self.event or self.search
        assert row is not None
        return Place(self.at, self.event is not None, row.pk)


@dataclass(frozen=True, slots=True)
class Turn:
    number: int
    moments: Sequence[TimelineItem]


@dataclass(frozen=True, slots=True)
class Timeline:
    turns: Sequence[Turn]
    older: Place | None  # the last moment shown, before which the next part begins; None at the end


def read_timeline(
    session: AgentSession, *, before: Place | None = None, most: int = MOMENTS_SHOWN
) -> Timeline:
    """At most `most` moments, those right before a place when one is given."""
    events, searches = session.events.all(), session.searches.all()
    if before is not None:
        events = events.filter(_is_before(before, is_event=True))
        searches = searches.filter(_is_before(before, is_event=False))
    moments = [TimelineItem(event.at, event.turn, event=event) for event in events[: most + 1]]
    moments += [TimelineItem(search.at, search.turn, search=search) for search in searches[: most + 1]]
    moments.sort(key=lambda moment: moment.place, reverse=True)
    shown = moments[:most]
    older = shown[-1].place if len(moments) > most else None
    turns = itertools.groupby(shown, key=lambda moment: moment.turn)
    return Timeline([Turn(number, list(of_turn)) for number, of_turn in turns], older)


def read_place(cursor: str) -> Place | None:
    """None for a text that no page has given."""
    try:
        at_text, kind, pk_text = read_cursor(cursor, parts=3)
        at, pk = parse_datetime(at_text), int(pk_text)
        if at is None or at.tzinfo is None or kind not in (_EVENT, _SEARCH):
            return None
        return Place(at.astimezone(UTC), kind == _EVENT, pk)
    except (InvalidInput, ValueError, OverflowError):  # a moment before the year 1 in UTC
        return None


def _is_before(place: Place, *, is_event: bool) -> Q:
    """Which events, or searches, come before a place: by their ids those of its own kind and instant."""
    earlier = Q(at__lt=place.at)
    if is_event == place.is_event:
        return earlier | Q(at=place.at, pk__lt=place.pk)
    return earlier if is_event else earlier | Q(at=place.at)
