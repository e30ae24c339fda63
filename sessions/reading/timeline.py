"""A session's timeline: its events and its searches together, the latest first, turn by turn."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sessions.models import AgentSession, SearchEvent, SessionEvent

MOMENTS_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Moment:
    """Either an event or a search."""

    at: datetime
    turn: int
    event: SessionEvent | None = None
    search: SearchEvent | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    number: int
    moments: Sequence[Moment]


@dataclass(frozen=True, slots=True)
class Timeline:
    turns: Sequence[Turn]
    older: datetime | None  # where the next part begins, None at the end


def read_timeline(
    session: AgentSession, *, before: datetime | None = None, most: int = MOMENTS_SHOWN
) -> Timeline:
    """At most `most` moments, those right before a moment when one is given."""
    events, searches = session.events.all(), session.searches.all()
    if before is not None:
        events, searches = events.filter(at__lt=before), searches.filter(at__lt=before)
    moments = [Moment(event.at, event.turn, event=event) for event in events[: most + 1]]
    moments += [Moment(search.at, search.turn, search=search) for search in searches[: most + 1]]
    moments.sort(key=lambda moment: moment.at, reverse=True)
    shown = moments[:most]
    older = shown[-1].at if len(moments) > most else None
    turns = itertools.groupby(shown, key=lambda moment: moment.turn)
    return Timeline([Turn(number, list(of_turn)) for number, of_turn in turns], older)
