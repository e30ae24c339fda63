"""What agents searched for lately."""

from dataclasses import dataclass
from datetime import datetime

from sessions.models import Outcome, SearchEvent

SHOWN = 8
LOOKED_AT = 100  # agents repeat themselves


@dataclass(frozen=True, slots=True)
class RecentSearch:
    query: str
    form: str
    outcome: Outcome
    hits: int
    at: datetime


def recent_searches() -> list[RecentSearch]:
    """Each query once, the latest first; requests to browse are left out."""
    events = SearchEvent.objects.exclude(outcome=Outcome.LISTING).order_by("-at", "-pk")
    rows = events.values_list("query", "form", "outcome", "hits", "at")[:LOOKED_AT]
    found: dict[tuple[str, str], RecentSearch] = {}
    for query, form, outcome, hits, at in rows:
        if query.strip():
            found.setdefault((query, form), RecentSearch(query, form, Outcome(outcome), len(hits), at))
    return list(found.values())[:SHOWN]
