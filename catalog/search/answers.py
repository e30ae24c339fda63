"""Answers one search request over one compiled catalog. Uses no files, so it also serves while the index is
rebuilt.
"""

import dataclasses

import numpy as np

from catalog.domain.errors import InvalidInput
from catalog.domain.query import Browse, Keywords, Pattern, Required, Select, name_forms
from catalog.search import words
from catalog.search.arrays import Mask
from catalog.search.compiled import Compiled
from catalog.search.meaning import Encoder
from catalog.search.patterns import match_rows
from catalog.search.ranking import RANKERS, Ranking, Task
from catalog.search.request import Hit, MatchedBy, MatchOutcome, ScorePart, SearchOutcome, SearchRequest
from catalog.search.term_lookup import RowNumbers, Scores
from catalog.search.unmatched import find_unmatched

_REQUIRED_SHARE = np.float32(0.01)  # required words order the hits only where the rest leaves a tie
_NAMED_SCORE = 1.0


def answer(compiled: Compiled, request: SearchRequest, encoder: Encoder | None) -> SearchOutcome:
    """Raises `InvalidInput` for an unknown ranker and for a pattern that is invalid or runs too long."""
    query = request.query
    allowed = _allowed_rows(compiled, request)
    if isinstance(query, Browse):
        return SearchOutcome(MatchOutcome.LISTING, query.form)
    if isinstance(query, Select):
        return _select(compiled, query, allowed)
    if isinstance(query, Pattern):
        return _match(compiled, query, request, allowed)
    if request.ranker not in RANKERS:
        raise InvalidInput.at("ranker", f"{request.ranker!r} is not one of {', '.join(RANKERS)}")
    if isinstance(query, Required):
        return _rank_required(query, request, _make_task(compiled, query.rest, request, allowed, encoder))
    task = _make_task(compiled, query.text, request, allowed, encoder)
    ranking = RANKERS[request.ranker](task)
    return _collect(query, request, task, ranking, _find_unmatched(task, ranking))


def _make_task(
    compiled: Compiled, text: str, request: SearchRequest, allowed: Mask | None, encoder: Encoder | None
) -> Task:
    return Task(compiled, text, request.max_results, allowed, encoder, request.meaning_floor)


def _allowed_rows(compiled: Compiled, request: SearchRequest) -> Mask | None:
    allowed = None if request.visible is None else compiled.mask_of(request.visible)
    if request.server is None:
        return allowed
    on_server = compiled.mask_of_server(request.server)
    return on_server if allowed is None else on_server & allowed


def _select(compiled: Compiled, query: Select, allowed: Mask | None) -> SearchOutcome:
    rows: dict[int, None] = {}
    missing = []
    for name in query.names:
        named = _find_named(compiled, name, allowed)
        rows.update(dict.fromkeys(named))
        if not named:
            missing.append(name)
    hits = tuple(_make_hit(compiled, row, _NAMED_SCORE) for row in rows)
    outcome = MatchOutcome.MATCHED if hits else MatchOutcome.NO_MATCH
    return SearchOutcome(outcome, query.form, hits, missing=tuple(missing))


def _match(compiled: Compiled, query: Pattern, request: SearchRequest, allowed: Mask | None) -> SearchOutcome:
    """Tools whose name fits come before those that only speak of it."""
    found = match_rows(compiled, query.text, allowed, request.deadline)
    ordered = sorted(found, key=lambda row: ("name" not in found[row], row))[: request.max_results]
    hits = tuple(
        _make_hit(compiled, row, _NAMED_SCORE, (ScorePart(query.text, found[row], _NAMED_SCORE),))
        for row in ordered
    )
    return SearchOutcome(MatchOutcome.MATCHED if hits else MatchOutcome.NO_MATCH, query.form, hits)


def _rank_required(query: Required, request: SearchRequest, task: Task) -> SearchOutcome:
    """Every tool whose name has the required words is a hit; the rest of the query orders them."""
    named = {word: _rows_with_word(task.compiled, word, task.allowed) for word in query.required}
    fitting: Mask = np.logical_and.reduce(list(named.values()))
    narrowed = dataclasses.replace(task, allowed=fitting)
    rank = RANKERS[request.ranker]
    ranking = rank(dataclasses.replace(narrowed, text=" ".join(query.required), encoder=None))
    scores = fitting + ranking.scores
    if query.rest:
        ranking = rank(narrowed)
        scores = ranking.scores + scores * _REQUIRED_SHARE
    lacking = [word for word, rows in named.items() if not rows.any()]
    unmatched = [*lacking, *_find_unmatched(task, ranking)]
    tell_by = ranking.tell_by

    def tell(row: int) -> MatchedBy:
        """The name has the required words, whatever found it among the rest."""
        return MatchedBy.WORDS if tell_by(row) == MatchedBy.WORDS else MatchedBy.BOTH

    found = dataclasses.replace(ranking, scores=scores, tell_by=tell)
    return _collect(query, request, narrowed, found, unmatched)


def _find_unmatched(task: Task, ranking: Ranking) -> list[str]:
    lacking = find_unmatched(task.compiled, task.text, task.allowed)
    return [word for word in lacking if not any(word.lower() in term for term in ranking.inside)]


def _rows_with_word(compiled: Compiled, word: str, allowed: Mask | None) -> Mask:
    """Visible tools whose qualified name has the word; a compound word also matches as its parts."""
    rows = np.ones(len(compiled), dtype=np.bool_) if allowed is None else allowed.copy()
    for run in words.split_words(word):
        parts = [_rows_with_term(compiled, term) for part in run.parts for term in part.terms]
        fits = np.logical_and.reduce(parts)
        rows &= fits if run.joined is None else fits | _rows_with_term(compiled, run.joined)
    return rows


def _rows_with_term(compiled: Compiled, term: str) -> Mask:
    mask = np.zeros(len(compiled), dtype=np.bool_)
    mask[compiled.rows_named_with(term)] = True
    return mask


def _collect(
    query: Keywords | Required,
    request: SearchRequest,
    task: Task,
    ranking: Ranking,
    unmatched: list[str],
) -> SearchOutcome:
    compiled = task.compiled
    exact = _find_named(compiled, query.text, task.allowed)
    scores, bonus = _lift(ranking.scores, exact, ranking.exact_points)
    hits = []
    best = _best_rows(scores, request.max_results, max(request.score_cutoff, ranking.kept_share))
    for row, score in zip(best.tolist(), scores[best].tolist(), strict=True):
        parts = ranking.explain(row) if request.explained else ()
        if request.explained and row in exact:
            parts = (ScorePart(query.text, "exact name", bonus), *parts)
        by = MatchedBy.WORDS if row in exact else ranking.tell_by(row)
        hits.append(_make_hit(compiled, row, score, parts, is_named=row in exact, by=by))
    outcome = MatchOutcome.MATCHED if hits else MatchOutcome.NO_MATCH
    return SearchOutcome(outcome, query.form, tuple(hits), unmatched_terms=() if exact else tuple(unmatched))


def _lift(scores: Scores, exact: tuple[int, ...], exact_points: float) -> tuple[Scores, float]:
    """Put tools whose name was typed above all others, by at least the ranker's own points for that."""
    if not exact:
        return scores, 0.0
    bonus = max(float(scores.max()) + 1.0, exact_points)
    lifted = scores.copy()
    lifted[list(exact)] += bonus
    return lifted, bonus


def _best_rows(scores: Scores, count: int, cutoff: float) -> RowNumbers:
    """The best rows, best first; equal scores in name order."""
    rows = (scores > 0).nonzero()[0]
    found = scores[rows]
    if count < len(rows):
        least = np.partition(found, len(rows) - count)[len(rows) - count]
        rows = rows[found >= least]
        found = scores[rows]
    ordered = rows[(-found).argsort(kind="stable")][:count]
    if cutoff and len(ordered):
        ordered = ordered[scores[ordered] >= cutoff * scores[ordered[0]]]
    return ordered


def _find_named(compiled: Compiled, text: str, allowed: Mask | None) -> tuple[int, ...]:
    """Visible tools with this name, whatever punctuation is around it."""
    found = (_rows_named(compiled, name, allowed) for name in name_forms(text))
    return next(filter(None, found), ())


def _rows_named(compiled: Compiled, name: str, allowed: Mask | None) -> tuple[int, ...]:
    rows = compiled.rows_named(name)
    return rows if allowed is None else tuple(row for row in rows if allowed[row])


def _make_hit(
    compiled: Compiled,
    row: int,
    score: float,
    parts: tuple[ScorePart, ...] = (),
    *,
    is_named: bool = False,
    by: MatchedBy = MatchedBy.WORDS,
) -> Hit:
    return Hit(int(compiled.ids[row]), compiled.qualified_name_of(row), score, parts, is_named, by)
