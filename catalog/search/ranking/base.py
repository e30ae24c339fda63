"""What every ranker takes and gives."""

from collections.abc import Callable
from dataclasses import dataclass

from catalog.search.arrays import Mask
from catalog.search.compiled import Compiled
from catalog.search.meaning import Encoder
from catalog.search.request import ScorePart
from catalog.search.terms import Scores


@dataclass(frozen=True, slots=True)
class Task:
    """Rank the tools of a catalog for a text. Rows outside `allowed` (unset: all are in) score nothing;
    neither need rows that are surely not among the best `count`.
    """

    compiled: Compiled
    text: str
    count: int
    allowed: Mask | None = None
    encoder: Encoder | None = None


@dataclass(frozen=True, slots=True)
class Ranking:
    """A score a row, 0 where nothing matched. `kept_share` is the ranker's own cutoff, a share of the best
    score; `inside` are terms it found inside words, which a search for whole words would not; `exact_points`
    are what it gives a tool whose name the whole query is.
    """

    scores: Scores
    explain: Callable[[int], tuple[ScorePart, ...]]
    kept_share: float = 0.0
    inside: frozenset[str] = frozenset()
    exact_points: float = 0.0
