"""The shared part of the rankers that award fixed points for texts that contain a term."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from catalog.search.arrays import Mask
from catalog.search.ranking.base import Ranking, Task
from catalog.search.request import ScorePart
from catalog.search.terms import Scores

MOST_TERMS = 24  # each is looked for in every text, so a query of hundreds would take too long


@dataclass(frozen=True, slots=True)
class Award:
    """What one term gives each tool in one field."""

    term: str
    field: str
    points: Scores


def count_terms(terms: Iterable[str]) -> list[tuple[str, int]]:
    """How often each term was typed; of a very long query the first terms count."""
    return list(islice(Counter(terms).items(), MOST_TERMS))


def give(term: str, field: str, fits: Mask, points: float) -> Award:
    return Award(term, field, fits * np.float32(points))


def sum_awards(task: Task, awards: Sequence[Award], kept_share: float = 0.0) -> Ranking:
    scores = np.zeros(len(task.compiled), dtype=np.float32)
    useful: set[str] = set()
    for award in awards:
        points = award.points if task.allowed is None else award.points * task.allowed
        scores += points
        if points.any():
            useful.add(award.term)

    def explain(row: int) -> tuple[ScorePart, ...]:
        return tuple(
            ScorePart(award.term, award.field, float(award.points[row]))
            for award in awards
            if award.points[row]
        )

    return Ranking(scores, explain, kept_share, frozenset(useful))
