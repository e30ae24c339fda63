"""Counts agents' activity by hour, in the transaction that records it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db.models import F

from sessions.models import ActivityHour, EventKind, SearchEventOutcome, SessionEvent
from sessions.services.events import PendingSearch


@dataclass(slots=True)
class _Counts:
    sessions: int = 0
    searches: int = 0
    misses: int = 0


def hour_of(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0)


def count_activity(*, events: Iterable[SessionEvent], searches: Iterable[PendingSearch]) -> None:
    """Add events and searches to the hours they belong to."""
    hours: defaultdict[datetime, _Counts] = defaultdict(_Counts)
    for begun in _begun(events):
        hours[hour_of(begun.at)].sessions += 1
    for search in searches:
        hours[hour_of(search.at)].searches += 1
        hours[hour_of(search.at)].misses += search.outcome == SearchEventOutcome.NO_MATCH
    # In order of time: two processes that add to the same hours never wait for each other in a circle.
    for hour, counts in sorted(hours.items(), key=lambda item: item[0]):
        _add(hour, counts)


def _begun(events: Iterable[SessionEvent]) -> Iterator[SessionEvent]:
    return (event for event in events if event.kind == EventKind.BEGAN)


def _add(hour: datetime, counts: _Counts) -> None:
    ActivityHour.objects.bulk_create([ActivityHour(hour=hour)], ignore_conflicts=True)
    ActivityHour.objects.filter(hour=hour).update(
        sessions=F("sessions") + counts.sessions,
        searches=F("searches") + counts.searches,
        misses=F("misses") + counts.misses,
    )
