"""Search requests and their outcomes."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from catalog.domain.limits import PATTERN_TEXT_SECONDS, PATTERN_WAIT_SECONDS, PATTERN_WORK_SECONDS
from catalog.domain.query import Query

DEFAULT_RESULTS = 5
# Of the right answers that all-MiniLM-L6-v2 puts first on the quality sets, 19 in 20 are this similar; of
# queries of random letters, asked of the same tools, 1 in 25 finds anything so similar.
DEFAULT_MEANING_FLOOR = 0.3


class MatchedBy(StrEnum):
    WORDS = "words"
    MEANING = "meaning"
    BOTH = "both"


class MatchOutcome(StrEnum):
    MATCHED = "matched"
    NO_MATCH = "no_match"
    LISTING = "listing"


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Visible:
    """The tools a session may see, by id. Reuse it between searches: its mask over the index is cached."""

    ids: NDArray[np.int64]

    @classmethod
    def of(cls, ids: Iterable[int]) -> "Visible":
        return cls(np.fromiter(ids, dtype=np.int64))


class PatternDeadline:
    """When a pattern has taken too long, over all texts of a search. Counts from the first text."""

    _LEAST_SECONDS = 0.001

    def __init__(self) -> None:
        self._started: float | None = None
        self._worked = 0.0

    def seconds_for_next_text(self) -> float:
        """Raises `TimeoutError` when the time is up. Processor time is dear to ask for: only where it may
        have passed.
        """
        if self._started is None:
            self._started, self._worked = time.monotonic(), time.thread_time()
        waited_seconds = time.monotonic() - self._started
        if waited_seconds < PATTERN_WORK_SECONDS - PATTERN_TEXT_SECONDS:
            return PATTERN_TEXT_SECONDS
        left_seconds = PATTERN_WORK_SECONDS - (time.thread_time() - self._worked)
        if waited_seconds > PATTERN_WAIT_SECONDS or left_seconds < 0:
            raise TimeoutError
        return max(self._LEAST_SECONDS, min(PATTERN_TEXT_SECONDS, left_seconds))


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """`visible` unset is every tool of the index. `score_cutoff` is a share of the best score. `explained`
    asks for the parts of each score. `meaning_floor` is the similarity from which a tool may match by meaning
    alone. Requests that one is made of, by `replace`, share its deadline.
    """

    query: Query
    ranker: str = "bm25f"
    max_results: int = DEFAULT_RESULTS
    score_cutoff: float = 0.0
    visible: Visible | None = None
    server: str | None = None
    explained: bool = False
    meaning_floor: float = DEFAULT_MEANING_FLOOR
    deadline: PatternDeadline = field(default_factory=PatternDeadline, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ScorePart:
    """The points of one term, as typed, in one field."""

    term: str
    field: str
    score: float


@dataclass(frozen=True, slots=True)
class Hit:
    """`is_named` when the query is exactly this tool's name."""

    id: int
    qualified_name: str
    score: float
    parts: tuple[ScorePart, ...] = ()
    is_named: bool = False
    by: MatchedBy = MatchedBy.WORDS


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A word that no visible tool has, and similar words that some visible tool has."""

    term: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """`missing` are the selected names that no visible tool has, `unmatched_terms` the words."""

    outcome: MatchOutcome
    form: str
    hits: tuple[Hit, ...] = ()
    missing: tuple[str, ...] = ()
    unmatched_terms: tuple[str, ...] = ()
    did_you_mean: tuple[Suggestion, ...] = ()
    generation: int = 0
    took_ms: float = 0.0
