"""A node's own index follows the catalog by itself, and checking is cheap."""

from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest
from django.db import OperationalError
from django.test import override_settings
from pytest_django import DjangoAssertNumQueries

from catalog.models import CatalogVersion, Job
from catalog.selectors import search
from catalog.services import index_follower, reindex, tools
from catalog.services.index_follower import Follower
from tests.harness.clocks import set_clock
from tests.harness.rows import make_tool

pytestmark = pytest.mark.django_db


def found(word: str) -> list[int]:
    return [hit.id for hit in search.search_catalog(query=word, ranker="bm25f", limit=5).hits]


def test_first_look_builds_and_the_next_one_costs_one_read(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    make_tool(name="fly_kite")
    follower = Follower()
    assert follower.catch_up()
    with django_assert_num_queries(1):
        assert not follower.catch_up()


def test_change_that_another_node_committed_is_found_without_a_job() -> None:
    tool = make_tool(name="fly_kite")
    follower = Follower()
    follower.catch_up()
    tool.description = "Lets a zeppelin rise."
    tool.save(update_fields=["description"])
    tools.mark_changed([tool.pk])
    assert follower.catch_up()
    assert found("zeppelin") == [tool.pk]
    assert not Job.objects.exists()


def test_lost_index_is_built_again(index_folder: Path) -> None:
    make_tool(name="fly_kite")
    follower = Follower()
    follower.catch_up()
    (index_folder / "CURRENT").unlink()
    assert follower.catch_up()
    assert reindex.read_index_lag() is not None


def test_older_generation_in_the_folder_is_caught_up_after_a_restart() -> None:
    make_tool(name="fly_kite")
    Follower().catch_up()
    tool = make_tool(name="sail_boat")
    tools.mark_changed([tool.pk])
    assert Follower().catch_up()
    assert found("boat") == [tool.pk]


def test_database_that_is_away_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    answers: Iterator[OperationalError | int] = iter([OperationalError("the server is away"), 7])
    stop = Event()

    def current(_: type[CatalogVersion]) -> int:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        stop.set()
        return answer

    monkeypatch.setattr(CatalogVersion, "current", classmethod(current))
    monkeypatch.setattr(index_follower, "PAUSE_AFTER_TROUBLE_SECONDS", 0.0)
    monkeypatch.setattr(reindex, "bring_up_to_date", lambda: None)
    index_follower.follow(stop, every_seconds=0.0)
    assert "cannot follow the catalog now" in caplog.text
    assert stop.is_set()


def test_rests_after_it_caught_up_and_looks_soon_where_there_was_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    took = iter([0.15, 0.01, 2.0])
    found, pauses, now = iter([True, False, True]), [], 0.0

    class Stop(Event):
        def wait(self, timeout: float | None = None) -> bool:
            pauses.append(timeout)
            return len(pauses) > 3

    def catch_up(_: Follower) -> bool:
        nonlocal now
        now += next(took)
        return next(found)

    monkeypatch.setattr(Follower, "catch_up", catch_up)
    set_clock(monkeypatch, index_follower, monotonic=lambda: now)
    index_follower.follow(Stop(), every_seconds=0.1)
    assert pauses == [0.1, pytest.approx(0.45), 0.1, 0.1]


@override_settings(NODES_KEEP_OWN_INDEX=True)
def test_nodes_that_follow_by_themselves_ask_for_no_job() -> None:
    make_tool(name="fly_kite")
    reindex.request_update()
    reindex.request_if_behind()
    assert not Job.objects.exists()
