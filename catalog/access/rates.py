"""Counts a key's requests, in the shared cache where there is one, else in this process."""

import logging
import time

from django.conf import settings
from django.core.cache import cache
from redis.exceptions import RedisError

from catalog.domain.rates import WINDOW_SECONDS, TooManyRequests, Window, seconds_left
from catalog.process_memory import remember

# How long a cache that did not answer is left alone: a request must not wait for what only counts.
LEFT_ALONE_SECONDS = 5.0

logger = logging.getLogger(__name__)

_window = Window()
_cache_rests_until = [0.0]


def _forget() -> None:
    _window.clear()
    _cache_rests_until[0] = 0.0


remember("requests of the last minute", _forget)


def count_request(*, key_id: int, limit_per_minute: int | None) -> None:
    """Raises TooManyRequests past the limit. Free for keys without a limit."""
    if limit_per_minute is None:
        return
    now = time.time()
    made = _count_shared(key_id, now) if settings.CACHE_IS_SHARED else None
    if made is None:
        made = _window.count(key_id)
    if made > limit_per_minute:
        raise TooManyRequests(seconds_left(now))


def _count_shared(key_id: int, now: float) -> int | None:
    """None while the cache is away: then each process counts for itself."""
    if now < _cache_rests_until[0]:
        return None
    name = f"rate:{key_id}:{int(now // WINDOW_SECONDS)}"
    try:
        cache.add(name, 0, timeout=2 * WINDOW_SECONDS)
        return cache.incr(name)
    except (RedisError, ValueError) as error:  # ValueError: the count ran out between the two calls
        logger.warning("the shared cache is away, each process counts for itself: %s", error)
        _cache_rests_until[0] = now + LEFT_ALONE_SECONDS
        return None
