"""A key's limit holds across processes that share a cache; a cache that is away stops nobody."""

from collections.abc import Iterator

import pytest
from django.core.cache import cache
from django.test import override_settings
from redis.exceptions import ConnectionError as CacheAway

from catalog.access import rates
from catalog.domain.rates import TooManyRequests, Window
from tests.harness.clocks import set_clock


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(rates, "_window", Window(clock=lambda: 0.0))
    monkeypatch.setattr(rates, "_cache_rests_until", [0.0])
    set_clock(monkeypatch, rates, time=lambda: 1_000_000.0)
    cache.clear()
    with override_settings(CACHE_IS_SHARED=True):
        yield
    cache.clear()


def count(times: int, *, limit: int) -> None:
    for _ in range(times):
        rates.count_request(key_id=7, limit_per_minute=limit)


def test_processes_count_together(monkeypatch: pytest.MonkeyPatch) -> None:
    count(2, limit=3)
    monkeypatch.setattr(rates, "_window", Window())  # another process, the same cache
    count(1, limit=3)
    with pytest.raises(TooManyRequests):
        count(1, limit=3)


def test_cache_that_is_away_stops_nobody_and_the_limit_still_holds(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked = []

    def fail(*_: object, **__: object) -> bool:
        asked.append(1)
        raise CacheAway("connection refused")

    monkeypatch.setattr(cache, "add", fail)
    count(3, limit=3)
    with pytest.raises(TooManyRequests):
        count(1, limit=3)
    assert len(asked) == 1  # it is left alone for a while: no request waits for it
    assert "each process counts for itself" in caplog.text
