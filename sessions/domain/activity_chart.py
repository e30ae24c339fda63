"""Bar chart of activity over time. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

BAR_GAP = 0.28
LAST_LABEL_PERCENT = 92  # one further right would stand out of the drawing


class Period(StrEnum):
    DAY = "24h"
    WEEK = "7d"

    @property
    def hours(self) -> int:
        return 24 if self is Period.DAY else 168

    @property
    def bar_hours(self) -> int:
        """Hours per bar."""
        return 1 if self is Period.DAY else 6

    @property
    def words(self) -> str:
        return "24 hours" if self is Period.DAY else "7 days"

    @property
    def bar_words(self) -> str:
        return "an hour" if self is Period.DAY else "six hours"

    def label(self, start: datetime) -> str:
        """The label below a bar: every sixth hour, or every day; empty for the others."""
        if self is Period.DAY:
            return f"{start:%H:%M}" if start.hour % 6 == 0 else ""
        return f"{start:%a %d}" if start.hour == 0 else ""


@dataclass(frozen=True, slots=True)
class ActivityBar:
    """Counts between `start` and `end`."""

    start: datetime
    end: datetime
    sessions: int = 0
    searches: int = 0
    misses: int = 0

    @property
    def is_empty(self) -> bool:
        return not (self.sessions or self.searches)


@dataclass(frozen=True, slots=True)
class DrawnBar:
    """A bar as it is drawn, in percent of the chart; some have a `label`."""

    bar: ActivityBar
    left: float
    width: float
    searches: float
    misses: float
    sessions: float
    label: str

    @property
    def searches_top(self) -> float:
        return 100 - self.searches

    @property
    def misses_top(self) -> float:
        """Drawn over the top part of the bar of searches."""
        return 100 - self.searches

    @property
    def sessions_top(self) -> float:
        return 100 - self.sessions


def start_bars(period: Period, *, now: datetime) -> list[datetime]:
    """Bars begin at multiples of their width, so that they do not move between polls."""
    newest = now.replace(hour=now.hour - now.hour % period.bar_hours, minute=0, second=0, microsecond=0)
    number = period.hours // period.bar_hours
    return [newest - timedelta(hours=period.bar_hours) * back for back in range(number - 1, -1, -1)]


def draw_bars(period: Period, bars: Sequence[ActivityBar]) -> list[DrawnBar]:
    """Scales searches and sessions each to their own maximum."""
    most_searches, most_sessions = max(bar.searches for bar in bars), max(bar.sessions for bar in bars)
    place = 100 / len(bars)
    return [
        DrawnBar(
            bar,
            left=round(place * (number + BAR_GAP / 2), 3),
            width=round(place * (1 - BAR_GAP), 3),
            searches=_percent(bar.searches, most_searches),
            misses=_percent(bar.misses, most_searches),
            sessions=_percent(bar.sessions, most_sessions),
            label=period.label(bar.start) if place * number <= LAST_LABEL_PERCENT else "",
        )
        for number, bar in enumerate(bars)
    ]


def _percent(value: int, most: int) -> float:
    return round(100 * value / most, 2) if most else 0.0
