"""The default ranker: BM25F over words, and similarity of meaning.

The evidence of words is a share: a tool's points, of the most that the rarest few words of the query could
give. It counts squared. So a tool that has the words wins clearly, chance hits on single words count little,
and there the meaning decides.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from catalog.search import words
from catalog.search.compiled import K1, Compiled
from catalog.search.meaning import Vectors
from catalog.search.ranking.base import Ranking, Task
from catalog.search.request import ScorePart
from catalog.search.term_lookup import RowNumbers, Scores
from catalog.search.words import Word

_PART_OF_KNOWN_RUN = 0.5  # `git` and `hub` when `GitHub` is a word of the catalog itself
_SIGNIFICANT_WORDS = 5  # no tool has all words of a long request
_MEANING_WEIGHT = np.float32(0.4)
_MIN_SIMILARITY = np.float32(0.1)
# A tool that has none of the words needs this much, and this share of the best score: below both, on the
# quality sets, no right answer is among the first eight.
_LEAST_ALONE, _LEAST_SHARE_ALONE = np.float32(0.014), np.float32(0.2)
# The most that meaning adds, and a little for rounding: a tool this far below the best by words is not among
# them. Where that leaves few tools, their vectors alone are read.
_MOST_BY_MEANING = float(_MEANING_WEIGHT * (1 - _MIN_SIMILARITY)) + 0.001
_FEW = 256
_NEVER, _LEAST = -1.0, -0.5
_TINY = float(np.finfo(np.float32).tiny)
_FOLDS = 8


class WeightedTerm(NamedTuple):
    term: str
    weight: float
    typed: str


def rank(task: Task) -> Ranking:
    asked = words.significant_words(task.text)
    terms = weigh_terms(task.compiled, asked)
    evidence = _weigh_evidence(task.compiled, terms)
    if task.allowed is not None:
        evidence *= task.allowed
    if not evidence.max(initial=0):
        return Ranking(evidence, lambda _: ())
    if len(asked) == 1:  # a tool has the only word, or it is no answer
        task = dataclasses.replace(task, allowed=evidence > 0)
    scores = _add_meaning(task, evidence * evidence)

    def explain(row: int) -> tuple[ScorePart, ...]:
        by_words = [part for weighted in terms for part in explain_term(task.compiled, weighted, row)]
        factor = float(evidence[row]) ** 2 / max(sum(part.score for part in by_words), 1e-9)
        parts = [ScorePart(part.term, part.field, part.score * factor) for part in by_words]
        by_meaning = float(scores[row] - evidence[row] ** 2)
        if task.encoder is not None and by_meaning > 0:
            parts.append(ScorePart(task.text, "meaning", by_meaning))
        return tuple(parts)

    return Ranking(scores, explain)


def weigh_terms(compiled: Compiled, asked: Sequence[Word]) -> list[WeightedTerm]:
    """The terms to look up, each once with its greatest weight."""
    chosen: dict[str, WeightedTerm] = {}
    for word in asked:
        is_known = word.joined is not None and word.joined in compiled.term_numbers
        weight = _PART_OF_KNOWN_RUN if is_known else 1.0
        for part in word.parts:
            for term in part.terms:
                _choose(chosen, WeightedTerm(term, weight, part.typed))
        if word.joined is not None:
            _choose(chosen, WeightedTerm(word.joined, 1.0, word.typed))
    return list(chosen.values())


def _choose(chosen: dict[str, WeightedTerm], candidate: WeightedTerm) -> None:
    known = chosen.setdefault(candidate.term, candidate)
    if known.weight < candidate.weight:
        chosen[candidate.term] = candidate


def explain_term(compiled: Compiled, weighted: WeightedTerm, row: int) -> list[ScorePart]:
    """A term's points for a tool by field, before they become a share."""
    found = compiled.postings_of(weighted.term)
    if found is None:
        return []
    at = int(np.searchsorted(found.rows, row))
    if at == len(found.rows) or found.rows[at] != row:
        return []
    impact = float(found.impacts[at]) * weighted.weight
    shares = compiled.field_shares(weighted.term, row)
    return [ScorePart(weighted.typed, field, impact * share) for field, share in shares.items()]


def _weigh_evidence(compiled: Compiled, terms: list[WeightedTerm]) -> Scores:
    """Each tool's points from words, as a share of what the rarest words could give."""
    rows, gains, limits = [], [], []
    for term, weight, _ in terms:
        found = compiled.postings_of(term)
        if found is None:
            limits.append(weight * compiled.unknown_idf)
            continue
        limits.append(weight * found.idf)
        rows.append(found.rows)
        gains.append(found.impacts if weight == 1 else found.impacts * np.float32(weight))
    if not rows:
        return np.zeros(len(compiled), dtype=np.float32)
    evidence = np.bincount(np.concatenate(rows), np.concatenate(gains), len(compiled))
    most = (K1 + 1) * math.fsum(sorted(limits)[-_SIGNIFICANT_WORDS:])
    return (evidence / max(most, 1e-9)).astype(np.float32)


def _add_meaning(task: Task, by_words: Scores) -> Scores:
    """Words or short vectors pick the candidates, full vectors score them; the others score nothing."""
    meaning = task.encoder.encode_query(task.text) if task.encoder else None
    if meaning is None:
        return by_words
    wanted = meaning.vector[np.newaxis]
    rows = _pick_candidates(task, wanted, by_words)
    known = by_words[rows]
    found = known + _value(task.compiled.vectors[rows] @ wanted[0])
    if task.allowed is not None:
        found *= task.allowed[rows]
    least = max(_LEAST_ALONE, found.max(initial=0) * _LEAST_SHARE_ALONE)
    found[(known == 0) & (found < least)] = 0
    scores = np.zeros_like(by_words)
    scores[rows] = found
    return scores


def _pick_candidates(task: Task, wanted: Vectors, by_words: Scores) -> RowNumbers:
    """The rows that may be among the best. What is not allowed has no points by words."""
    words_bar = _find_bar(by_words, task.count)
    if words_bar > _MOST_BY_MEANING:
        rows = np.flatnonzero(by_words >= words_bar - _MOST_BY_MEANING)
        if len(rows) <= _FEW:
            return rows
    vectors = task.compiled.coarse_vectors
    coarse = vectors @ (task.compiled.shorten_query(wanted[0]) * _MEANING_WEIGHT)
    coarse += by_words
    if task.allowed is not None:
        coarse[~task.allowed] = _NEVER
    slack = float(_MEANING_WEIGHT) * task.compiled.coarse_slack
    picked = coarse >= max(_find_bar(coarse, task.count) - slack, _LEAST)
    # Those best by words are judged too, however far their meaning seems: words rule where they match.
    picked |= by_words >= max(words_bar, _TINY)
    return np.flatnonzero(picked)


def _find_bar(scores: Scores, count: int) -> float:
    """A score that `count` tools reach and few more do, from the maxima of blocks of rows: faster than
    sorting all scores, and never too high.
    """
    width = len(scores) // _FOLDS
    if not 0 < count <= width:
        return _NEVER
    best = scores[: width * _FOLDS].reshape(_FOLDS, width).max(axis=0)
    return float(np.partition(best, width - count)[width - count])


def _value(similarity: Scores) -> Scores:
    similarity -= _MIN_SIMILARITY
    np.maximum(similarity, 0, out=similarity)
    similarity *= _MEANING_WEIGHT
    return similarity
