"""What a search is asked and what it answers."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from catalog.domain.query import Query

DEFAULT_RESULTS = 5


class Outcome(StrEnum):
    MATCHED = "matched"
    NO_MATCH = "no_match"
    LISTING = "listing"


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Visible:
    """The tools a session may see, by id. Keep it between searches: its mask over the index is remembered."""

    ids: NDArray[np.int64]

    @classmethod
    def of(cls, ids: Iterable[int]) -> "Visible":
        return cls(np.fromiter(ids, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """`visible` unset is every tool of the index. `score_cutoff` is a share of the best score. `explained`
    asks for the parts of each score.
    """

    query: Query
    ranker: str = "bm25f"
    max_results: int = DEFAULT_RESULTS
    score_cutoff: float = 0.0
    visible: Visible | None = None
    server: str | None = None
    explained: bool = False


@dataclass(frozen=True, slots=True)
class ScorePart:
    """What one term, as typed, gave in one field."""

    term: str
    field: str
    score: float


@dataclass(frozen=True, slots=True)
class Hit:
    """`is_named` tells that the query is exactly this tool's name."""

    id: int
    qualified_name: str
    score: float
    parts: tuple[ScorePart, ...] = ()
    is_named: bool = False


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A word no visible tool has, and words nearby that some visible tool does have."""

    term: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """`missing` are the selected names that no visible tool has, `unmatched_terms` the words."""

    outcome: Outcome
    form: str
    hits: tuple[Hit, ...] = ()
    missing: tuple[str, ...] = ()
    unmatched_terms: tuple[str, ...] = ()
    did_you_mean: tuple[Suggestion, ...] = ()
    generation: int = 0
    took_ms: float = 0.0
