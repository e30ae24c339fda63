"""Searches watched or bent for a test, since their ranking is tested elsewhere."""

from dataclasses import dataclass, field, replace

import pytest

from catalog.search.request import MatchedBy, SearchOutcome, SearchRequest
from catalog.selectors import search
from sessions.offers import offer_search


@dataclass
class Searches:
    """Every request that was made; where `by` is set, all hits were found by that."""

    requests: list[SearchRequest] = field(default_factory=list)
    by: MatchedBy | None = None

    @property
    def floors(self) -> list[float]:
        return [request.meaning_floor for request in self.requests]


def watch_searches(monkeypatch: pytest.MonkeyPatch, *, by: MatchedBy | None = None) -> Searches:
    """From now on, by agents, the console, commands and REST."""
    watched, run_search = Searches(by=by), search.run_search

    def run(request: SearchRequest) -> SearchOutcome:
        watched.requests.append(request)
        outcome = run_search(request)
        if watched.by is None:
            return outcome
        return replace(outcome, hits=tuple(replace(hit, by=watched.by) for hit in outcome.hits))

    monkeypatch.setattr(search, "run_search", run)
    monkeypatch.setattr(offer_search, "run_search", run)
    return watched
