"""Shared by the rankers that award fixed points for texts that contain a term."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from catalog.search.arrays import Mask
from catalog.search.ranking.base import Ranking, Task
from catalog.search.request import ScorePart
from catalog.search.stopwords import STOP_WORDS


@dataclass(frozen=True, slots=True)
class Award:
    """The points of one term for each tool that has it in one field."""

    term: str
    field: str
    fits: Mask
    points: float


def sum_awards(
    task: Task, awards: Sequence[Award], *, kept_share: float = 0.0, exact_points: float = 0.0
) -> Ranking:
    """Stop words alone find nothing in a query that has other words."""
    scores = np.zeros(len(task.compiled), dtype=np.float32)
    useful: set[str] = set()
    for award in awards:
        fits = award.fits if task.allowed is None else award.fits & task.allowed
        if fits.any():
            useful.add(award.term)
            scores += fits * np.float32(award.points)
    if useful <= STOP_WORDS and not all(award.term in STOP_WORDS for award in awards):
        scores[:] = 0

    def explain(row: int) -> tuple[ScorePart, ...]:
        return tuple(ScorePart(award.term, award.field, award.points) for award in awards if award.fits[row])

    return Ranking(scores, explain, kept_share, frozenset(useful), exact_points)
