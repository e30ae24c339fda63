"""Activity over time, from the counts of each hour."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sessions.domain.activity_chart import Period
from sessions.models import ActivityHour, SearchEvent, SearchEventOutcome
from sessions.selectors import activity
from sessions.selectors.activity import read_activity, read_misses
from tests.harness.rows import make_session

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 3, 4, 15, 20, tzinfo=UTC)
THIS_HOUR = NOW.replace(minute=0)


def count(hours_ago: int, **counts: int) -> None:
    ActivityHour.objects.create(hour=THIS_HOUR - timedelta(hours=hours_ago), **counts)


def add_miss(query: str, *, hours_ago: float = 0, **values: Any) -> None:
    values = {"form": "keywords", "outcome": SearchEventOutcome.NO_MATCH, "turn": 0, "took_us": 1} | values
    SearchEvent.objects.create(
        session=make_session(), query=query, at=NOW - timedelta(hours=hours_ago), **values
    )


class TestBars:
    def test_day_has_a_bar_for_each_hour_and_leaves_out_what_is_older(self) -> None:
        count(0, searches=5, misses=1)
        count(23, sessions=2)
        count(24, searches=1000)
        shown = read_activity(Period.DAY, now=NOW)
        assert len(shown.bars) == 24
        assert (shown.bars[-1].start, shown.bars[-1].searches) == (THIS_HOUR, 5)
        assert shown.bars[0].sessions == 2
        assert (shown.searches, shown.misses, shown.sessions) == (5, 1, 2)
        assert shown.miss_share == 0.2

    def test_week_sums_six_hours_to_a_bar(self) -> None:
        count(0, searches=1)
        count(3, searches=2)
        count(4, searches=4)
        shown = read_activity(Period.WEEK, now=NOW)
        assert len(shown.bars) == 28
        assert [bar.searches for bar in shown.bars[-2:]] == [4, 3]
        assert shown.bars[-1].start.hour == 12

    def test_columns_are_percent_of_the_highest(self) -> None:
        count(1, searches=10, misses=5, sessions=1)
        count(0, searches=5, sessions=4)
        before, last = read_activity(Period.DAY, now=NOW).columns[-2:]
        assert (before.searches, before.misses, before.sessions) == (100, 50, 25)
        assert (last.searches, last.searches_top, last.sessions) == (50, 50, 100)
        assert before.left < last.left < last.left + last.width < 100

    def test_nothing_yet_is_empty_and_divides_by_nothing(self) -> None:
        shown = read_activity(Period.DAY, now=NOW)
        assert shown.is_empty
        assert shown.miss_share == 0
        assert {column.searches for column in shown.columns} == {0}

    def test_stamp_changes_with_the_counts_alone(self) -> None:
        count(0, searches=1)
        before = read_activity(Period.DAY, now=NOW).stamp
        assert read_activity(Period.DAY, now=NOW + timedelta(minutes=5)).stamp == before
        ActivityHour.objects.update(searches=2)
        assert read_activity(Period.DAY, now=NOW).stamp != before


class TestActiveSessions:
    def test_counts_those_seen_within_the_hour_up_to_a_bound(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for minutes in (1, 2, 3, 90):
            make_session(last_seen_at=NOW - timedelta(minutes=minutes), expires_at=NOW + timedelta(days=1))
        shown = read_activity(Period.DAY, now=NOW)
        assert (shown.active, shown.is_more_active) == (3, False)
        monkeypatch.setattr(activity, "MOST_COUNTED", 2)
        bounded = read_activity(Period.DAY, now=NOW)
        assert (bounded.active, bounded.is_more_active) == (2, True)


class TestMisses:
    def test_most_often_asked_first_then_the_latest(self) -> None:
        for query, hours_ago in (("jazz", 3), ("opera", 2), ("jazz", 1), ("blues", 0.5), ("old", 30)):
            add_miss(query, hours_ago=hours_ago)
        add_miss("found", outcome=SearchEventOutcome.MATCHED)
        found = [(miss.query, miss.count) for miss in read_misses(Period.DAY, now=NOW)]
        assert found == [("jazz", 2), ("blues", 1), ("opera", 1)]

    def test_pattern_is_not_the_query_of_the_same_text(self) -> None:
        add_miss("jazz")
        add_miss("jazz", form="pattern", hours_ago=1)
        found = [(miss.query, miss.is_pattern) for miss in read_misses(Period.DAY, now=NOW)]
        assert found == [("jazz", False), ("jazz", True)]
