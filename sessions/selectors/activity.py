"""Activity over time, from the hourly counts."""

import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sessions.domain.activity_chart import ActivityBar, DrawnBar, Period, draw_bars, start_bars
from sessions.models import ActivityHour, AgentSession, SearchEvent, SearchEventOutcome
from sessions.selectors.own_sessions import IDLE_AFTER
from sessions.selectors.stamps import stamp_of

MISSES_READ = 1000
MISSES_SHOWN = 8
MOST_COUNTED = 1000


@dataclass(frozen=True, slots=True)
class Miss:
    """A query that found nothing, with when and in which session it was last asked."""

    query: str
    is_pattern: bool
    count: int
    at: datetime
    session_id: uuid.UUID


@dataclass(frozen=True, slots=True)
class Activity:
    period: Period
    bars: Sequence[ActivityBar]
    active: int
    is_more_active: bool  # than were counted

    @property
    def sessions(self) -> int:
        return sum(bar.sessions for bar in self.bars)

    @property
    def searches(self) -> int:
        return sum(bar.searches for bar in self.bars)

    @property
    def misses(self) -> int:
        return sum(bar.misses for bar in self.bars)

    @property
    def miss_share(self) -> float:
        return self.misses / self.searches if self.searches else 0.0

    @property
    def most_searches(self) -> int:
        return max(bar.searches for bar in self.bars)

    @property
    def most_sessions(self) -> int:
        return max(bar.sessions for bar in self.bars)

    @property
    def columns(self) -> list[DrawnBar]:
        return draw_bars(self.period, self.bars)

    @property
    def is_empty(self) -> bool:
        return not (self.sessions or self.searches or self.active)

    @property
    def stamp(self) -> str:
        return stamp_of(self.period, self.bars, self.active)


def read_activity(period: Period, *, now: datetime) -> Activity:
    """Reads one row per hour, and counts at most a thousand sessions."""
    bars = _read_bars(period, now=now)
    since = now - IDLE_AFTER
    lately = AgentSession.objects.live(now=now).filter(last_seen_at__gt=since)[: MOST_COUNTED + 1].count()
    return Activity(period, bars, min(lately, MOST_COUNTED), lately > MOST_COUNTED)


def read_misses(period: Period, *, now: datetime) -> list[Miss]:
    """The most frequent queries without a match, among the last thousand such searches of the period."""
    since = now - timedelta(hours=period.hours)
    missed = SearchEvent.objects.filter(outcome=SearchEventOutcome.NO_MATCH, at__gte=since)
    counts: Counter[tuple[str, bool]] = Counter()
    last: dict[tuple[str, bool], tuple[datetime, uuid.UUID]] = {}
    rows = missed.order_by("-at").values_list("query", "form", "at", "session_id")
    for query, form, at, session_id in rows[:MISSES_READ]:
        asked = (query, form == "pattern")
        counts[asked] += 1
        last.setdefault(asked, (at, session_id))
    # The latest come first, and of two that were asked equally often they stay so.
    return [Miss(*asked, count, *last[asked]) for asked, count in counts.most_common(MISSES_SHOWN)]


def _read_bars(period: Period, *, now: datetime) -> list[ActivityBar]:
    starts, width = start_bars(period, now=now), timedelta(hours=period.bar_hours)
    sums: dict[int, Counter[str]] = {place: Counter() for place in range(len(starts))}
    for row in ActivityHour.objects.filter(hour__gte=starts[0]):
        place = min((row.hour - starts[0]) // width, len(starts) - 1)
        sums[place].update(sessions=row.sessions, searches=row.searches, misses=row.misses)
    return [ActivityBar(start, start + width, **sums[place]) for place, start in enumerate(starts)]
