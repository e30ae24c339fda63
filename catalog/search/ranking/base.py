"""Input and output of every ranker."""

from collections.abc import Callable
from dataclasses import dataclass

from catalog.domain.policy import DEFAULT_MEANING_FLOOR
from catalog.search.arrays import Mask
from catalog.search.compiled import Compiled
from catalog.search.meaning import Encoder
from catalog.search.request import MatchedBy, ScorePart
from catalog.search.term_lookup import Scores


@dataclass(frozen=True, slots=True)
class Task:
    """Rank the tools of a catalog for a text. Rows outside `allowed` (None: all) score 0, and so may rows
    that are certainly not among the best `count`.
    """

    compiled: Compiled
    text: str
    count: int
    allowed: Mask | None = None
    encoder: Encoder | None = None
    meaning_floor: float = DEFAULT_MEANING_FLOOR


@dataclass(frozen=True, slots=True)
class Ranking:
    """One score per row, 0 where nothing matched. `kept_share` is the ranker's own cutoff, as a share of the
    best score; `inside` are terms found inside words; `exact_points` is the bonus for a tool whose name is
    the whole query; `tell_by` says what found a tool.
    """

    scores: Scores
    explain: Callable[[int], tuple[ScorePart, ...]]
    kept_share: float = 0.0
    inside: frozenset[str] = frozenset()
    exact_points: float = 0.0
    tell_by: Callable[[int], MatchedBy] = lambda _: MatchedBy.WORDS
