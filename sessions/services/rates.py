"""Counts a key's requests: in this process, or in the shared cache where there is one."""

import time

from django.conf import settings
from django.core.cache import cache

from sessions.domain.rates import WINDOW_SECONDS, TooManyRequests, Window, seconds_left

_window = Window()


def count_request(*, key_id: int, limit_per_minute: int | None) -> None:
    """Raises TooManyRequests past the limit. A key without one costs nothing."""
    if limit_per_minute is None:
        return
    now = time.time()
    made = _count_shared(key_id, now) if settings.CACHE_IS_SHARED else _window.count(key_id)
    if made > limit_per_minute:
        raise TooManyRequests(seconds_left(now))


def _count_shared(key_id: int, now: float) -> int:
    name = f"rate:{key_id}:{int(now // WINDOW_SECONDS)}"
    cache.add(name, 0, timeout=2 * WINDOW_SECONDS)
    return cache.incr(name)
