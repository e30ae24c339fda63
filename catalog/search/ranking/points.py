"""The shared part of the rankers that award fixed points for texts that contain a term."""

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np

from catalog.search.compiled import Mask, Scores
from catalog.search.ranking.base import Ranking, Task
from catalog.search.request import ScorePart


@dataclass(frozen=True, slots=True)
class Award:
    """What one term gives each tool in one field."""

    term: str
    field: str
    points: Scores


def find_containing(texts: Sequence[str], term: str) -> Mask:
    return np.fromiter(map(operator.contains, texts, repeat(term)), dtype=np.bool_, count=len(texts))


def find_equal(texts: Sequence[str], term: str) -> Mask:
    return np.fromiter(map(operator.eq, texts, repeat(term)), dtype=np.bool_, count=len(texts))


def give(term: str, field: str, fits: Mask, points: float) -> Award:
    return Award(term, field, fits * np.float32(points))


def sum_awards(task: Task, terms: Iterable[str], awards: Sequence[Award], kept_share: float = 0.0) -> Ranking:
    """Add the awards up. `unmatched` are the terms that gave no visible tool anything."""
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

    unmatched = tuple(term for term in dict.fromkeys(terms) if term not in useful)
    return Ranking(scores, unmatched, explain, kept_share)
