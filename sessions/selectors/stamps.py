"""Stamps by which a polled page is seen to have changed."""

import hashlib
from datetime import datetime

MINUTE_SECONDS, HOUR_SECONDS = 60, 3600


def stamp_of(*facts: object) -> str:
    """The same for the same facts, in every process."""
    return hashlib.sha256(repr(facts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def age_shown(moment: datetime, *, now: datetime) -> tuple[str, int]:
    """An age as coarse as pages show it: minutes, then hours."""
    seconds = int((now - moment).total_seconds())
    if seconds < HOUR_SECONDS:
        return "minutes", seconds // MINUTE_SECONDS
    return "hours", seconds // HOUR_SECONDS
