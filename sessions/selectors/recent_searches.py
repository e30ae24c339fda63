"""The latest queries of agents."""

from dataclasses import dataclass
from datetime import datetime

from sessions.models import SearchEvent, SearchEventOutcome

SHOWN = 8
LOOKED_AT = 100  # agents repeat themselves


@dataclass(frozen=True, slots=True)
class RecentSearch:
    query: str
    form: str
    outcome: SearchEventOutcome
    hits: int
    at: datetime


def recent_searches() -> list[RecentSearch]:
    """Each query once, the latest first; requests to browse are left out."""
    events = SearchEvent.objects.exclude(outcome=SearchEventOutcome.LISTING).order_by("-at", "-pk")
    rows = events.values_list("query", "form", "outcome", "hits", "at")[:LOOKED_AT]
    found: dict[tuple[str, str], RecentSearch] = {}
    for query, form, outcome, hits, at in rows:
        if query.strip():
            found.setdefault(
                (query, form), RecentSearch(query, form, SearchEventOutcome(outcome), len(hits), at)
            )
    return list(found.values())[:SHOWN]
