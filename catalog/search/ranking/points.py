"""The shared part of the rankers that award fixed points: every visible tool is judged by itself."""

from collections.abc import Callable, Iterator

import numpy as np

from catalog.domain.query import strip_quotes
from catalog.search.ranking.base import Ranking, Task
from catalog.search.request import ScorePart

Points = Iterator[ScorePart]
Judge = Callable[[str, tuple[str, ...], str, str, list[str]], Points]


def award_points(task: Task, judge: Judge, kept_share: float = 0.0) -> Ranking:
    query = task.text.strip().lower()
    terms = tuple(dict.fromkeys(term for typed in query.split() if (term := strip_quotes(typed))))
    compiled = task.compiled
    names, descriptions, parameters = compiled.folded_names, compiled.folded_descriptions, compiled.folded_parameters

    def explain(row: int) -> tuple[ScorePart, ...]:
        return tuple(judge(query, terms, names[row], descriptions[row], parameters[row]))

    scores = np.zeros(len(compiled), dtype=np.float32)
    seen: set[str] = set()
    for row in range(len(compiled)) if task.allowed is None else np.flatnonzero(task.allowed).tolist():
        parts = explain(row)
        if parts:
            scores[row] = sum(part.score for part in parts)
            seen.update(part.term for part in parts)
    return Ranking(scores, tuple(term for term in terms if term not in seen), explain, kept_share)
