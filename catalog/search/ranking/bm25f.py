"""The default ranker: BM25F over words, and meaning beside it.

The words' evidence is a share: what the words of the query gave a tool, of what the rarest few of them
could give at most. It counts squared. So a tool that has the words wins clearly, chance hits on single
words weigh almost nothing, and there the meaning decides.
"""

import dataclasses
import math
from collections.abc import Sequence
from heapq import nlargest
from typing import NamedTuple

import numpy as np

from catalog.search import words
from catalog.search.compiled import K1, Compiled, Rows, Scores
from catalog.search.meaning import shorten
from catalog.search.ranking.base import Ranking, Task
from catalog.search.request import ScorePart
from catalog.search.words import Run

_PART_OF_KNOWN_RUN = 0.5  # `git` and `hub` when `GitHub` is a word of the catalog itself
_TELLING_WORDS = 5  # no tool has all words of a long request
_MEANING_WEIGHT = np.float32(0.4)
_MIN_SIMILARITY = np.float32(0.1)
_NEVER = np.float32(-1)
_CANDIDATES = 256
_CANDIDATES_PER_RESULT = 4


class WeightedTerm(NamedTuple):
    term: str
    weight: float
    typed: str


def rank(task: Task) -> Ranking:
    asked = words.telling_runs(task.text)
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


def weigh_terms(compiled: Compiled, asked: Sequence[Run]) -> list[WeightedTerm]:
    """The terms to look up, each once with its greatest weight."""
    chosen: dict[str, WeightedTerm] = {}
    for run in asked:
        is_known = run.joined is not None and run.joined in compiled.term_numbers
        weight = _PART_OF_KNOWN_RUN if is_known else 1.0
        candidates = [WeightedTerm(term, weight, part.typed) for part in run.parts for term in part.terms]
        if run.joined is not None:
            candidates.append(WeightedTerm(run.joined, 1.0, run.typed))
        for candidate in candidates:
            known = chosen.get(candidate.term)
            if known is None or known.weight < candidate.weight:
                chosen[candidate.term] = candidate
    return list(chosen.values())


def explain_term(compiled: Compiled, weighted: WeightedTerm, row: int) -> list[ScorePart]:
    """What a term gave a tool, field by field, before it becomes a share."""
    found = compiled.postings_of(weighted.term)
    if found is None:
        return []
    rows, impacts = found
    at = int(np.searchsorted(rows, row))
    if at == len(rows) or rows[at] != row:
        return []
    impact = float(impacts[at]) * weighted.weight
    shares = compiled.field_shares(weighted.term, row)
    return [ScorePart(weighted.typed, field, impact * share) for field, share in shares.items()]


def _weigh_evidence(compiled: Compiled, terms: list[WeightedTerm]) -> Scores:
    """What the words gave each tool, as a share of what the most telling of them could give."""
    evidence = np.zeros(len(compiled), dtype=np.float32)
    limits = []
    for weighted in terms:
        found = compiled.postings_of(weighted.term)
        limits.append(weighted.weight * compiled.rarity(0 if found is None else len(found[0])))
        if found is not None:
            rows, impacts = found
            evidence[rows] += impacts if weighted.weight == 1 else impacts * np.float32(weighted.weight)
    most = (K1 + 1) * math.fsum(nlargest(_TELLING_WORDS, limits))
    evidence /= np.float32(max(most, 1e-9))
    return evidence


def _add_meaning(task: Task, by_words: Scores) -> Scores:
    """Short vectors pick the candidates, whole ones judge them; the others score nothing."""
    if task.encoder is None:
        return by_words
    compiled = task.compiled
    wanted = task.encoder.encode([task.text])
    coarse = compiled.coarse_vectors @ shorten(wanted, compiled.coarse_vectors.shape[1])[0]
    coarse *= _MEANING_WEIGHT
    coarse += by_words
    if task.allowed is not None:
        coarse[~task.allowed] = _NEVER
    wanted_rows = max(_CANDIDATES, task.count * _CANDIDATES_PER_RESULT)
    # Those best by words are judged too, however far their meaning seems: words rule where they match.
    judged = np.zeros(len(by_words), dtype=np.bool_)
    judged[_pick_best(coarse, wanted_rows)] = True
    judged[_pick_matching(by_words, task.count)] = True
    rows = np.flatnonzero(judged)
    scores = np.zeros_like(by_words)
    scores[rows] = by_words[rows] + _value(compiled.vectors[rows] @ wanted[0])
    if task.allowed is not None:
        scores *= task.allowed
    return scores


def _value(similarity: Scores) -> Scores:
    similarity -= _MIN_SIMILARITY
    np.maximum(similarity, 0, out=similarity)
    similarity *= _MEANING_WEIGHT
    return similarity


def _pick_best(scores: Scores, count: int) -> Rows:
    if count >= len(scores):
        return np.arange(len(scores))
    return np.argpartition(scores, len(scores) - count)[len(scores) - count :]


def _pick_matching(by_words: Scores, count: int) -> Rows:
    matching = np.flatnonzero(by_words > 0)
    return matching[_pick_best(by_words[matching], count)]
