"""Activity over time: what one looks at, in bars, and how the bars are drawn. Pure."""

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
        """How much time one bar stands for."""
        return 1 if self is Period.DAY else 6

    @property
    def words(self) -> str:
        return "24 hours" if self is Period.DAY else "7 days"

    @property
    def bar_words(self) -> str:
        return "an hour" if self is Period.DAY else "six hours"

    def label(self, start: datetime) -> str:
        """What stands below a bar: every sixth hour, or every day; below the others nothing."""
        if self is Period.DAY:
            return f"{start:%H:%M}" if start.hour % 6 == 0 else ""
        return f"{start:%a %d}" if start.hour == 0 else ""


@dataclass(frozen=True, slots=True)
class Bar:
    """Counts of the time from `start` to `end`."""

    start: datetime
    end: datetime
    sessions: int = 0
    searches: int = 0
    misses: int = 0

    @property
    def is_empty(self) -> bool:
        return not (self.sessions or self.searches)


@dataclass(frozen=True, slots=True)
class Column:
    """A bar as it is drawn: all in percent of the drawing; `label` stands below some of them."""

    bar: Bar
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
        """Above those that found something, within the same bar."""
        return 100 - self.searches

    @property
    def sessions_top(self) -> float:
        return 100 - self.sessions


def start_bars(period: Period, *, now: datetime) -> list[datetime]:
    """Bars begin at whole multiples of their width, so that they do not move while one looks."""
    newest = now.replace(hour=now.hour - now.hour % period.bar_hours, minute=0, second=0, microsecond=0)
    number = period.hours // period.bar_hours
    return [newest - timedelta(hours=period.bar_hours) * back for back in range(number - 1, -1, -1)]


def draw_columns(period: Period, bars: Sequence[Bar]) -> list[Column]:
    """Searches and sessions each as high as their own highest allows."""
    most_searches, most_sessions = max(bar.searches for bar in bars), max(bar.sessions for bar in bars)
    place = 100 / len(bars)
    return [
        Column(
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
