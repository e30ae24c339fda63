"""The default ranker: BM25F over words, and similarity of meaning.

The evidence of words is a share: a tool's points, of the most that the rarest few words of the query could
give. It counts to a power above one, and more where the best tool has much of it. So a tool that has the
words wins clearly, chance hits on single words count little, and there the meaning decides. The meaning
counts by the share of the query that the encoder knows. Beside a sentence encoder, which reads a text as a
whole, word vectors have a part in it: the two seldom err on the same query.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from catalog.search import words, wordvectors
from catalog.search.arrays import Mask
from catalog.search.coarse import COARSE_WORDS
from catalog.search.compiled import K1, Compiled
from catalog.search.meaning import Encoder, QueryMeaning, shorten
from catalog.search.ranking.base import Ranking, Task
from catalog.search.request import MatchedBy, ScorePart
from catalog.search.term_lookup import RowNumbers, Scores
from catalog.search.unmatched import has_visible
from catalog.search.words import Word

_PART_OF_KNOWN_RUN = 0.5  # `git` and `hub` when `GitHub` is a word of the catalog itself
_SIGNIFICANT_WORDS = 3  # no tool has all words of a long request
_BEST_SHARE = 0.28  # the power to which the best tool's evidence counts for all; one's own counts to 1.5
# The points for a similarity of one. Sentence encoders are right more often.
_WORDS_WEIGHT, _SENTENCE_WEIGHT = 0.95, 1.2
_MIN_SIMILARITY = np.float32(0.1)
# The part of word vectors in a similarity, beside a sentence encoder, where they know all of a query.
_WORDS_BESIDE = 1 / 6
# A tool that has none of the words needs to be this similar, and this share of the best score: below both, on
# the quality sets, hardly any right answer is among the first eight.
_LEAST_ALONE, _LEAST_SHARE_ALONE = 0.135, np.float32(0.2)
_ROUNDING = 1e-3
_FEW = 256
_NEVER, _LEAST = -4.0, -2.0
_TINY = float(np.finfo(np.float32).tiny)
_FOLDS = 8


class WeightedTerm(NamedTuple):
    term: str
    weight: float
    typed: str


@dataclasses.dataclass(frozen=True, slots=True)
class Likeness:
    """A query's vector, and the points for a similarity of one. `beside` is the query in word vectors, where
    those count too, `beside_share` their part in the similarity.
    """

    vector: Scores
    weight: float
    beside: Scores | None = None
    beside_share: float = 0.0

    @property
    def most(self) -> float:
        """What it can add to a score. Where that leaves few tools, their vectors alone are read."""
        return self.weight * (1 - float(_MIN_SIMILARITY)) + _ROUNDING

    def compare(self, compiled: Compiled, rows: RowNumbers) -> Scores:
        similarity: Scores = compiled.vectors[rows] @ self.vector
        if self.beside is not None:
            similarity *= np.float32(1 - self.beside_share)
            similarity += compiled.word_vectors[rows] @ self.beside * np.float32(self.beside_share)
        return similarity

    def compare_coarsely(self, compiled: Compiled) -> Scores:
        """The points for all tools by short vectors, before what is too little is taken off."""
        own = self.weight * (1 - self.beside_share)
        points: Scores = compiled.coarse_vectors @ (compiled.shorten_query(self.vector) * np.float32(own))
        if self.beside is not None:
            short = shorten(self.beside[np.newaxis], COARSE_WORDS)[0]
            points += compiled.coarse_word_vectors @ (short * np.float32(self.weight * self.beside_share))
        return points

    def value(self, similarity: Scores) -> Scores:
        similarity -= _MIN_SIMILARITY
        np.maximum(similarity, 0, out=similarity)
        similarity *= np.float32(self.weight)
        return similarity


def rank(task: Task) -> Ranking:
    asked = words.significant_words(task.text)
    terms = weigh_terms(task.compiled, asked, task.allowed)
    evidence = _weigh_evidence(task.compiled, terms)
    if task.allowed is not None:
        evidence *= task.allowed
    best = float(evidence.max(initial=0))
    if not best:
        return _rank_by_meaning(task)
    if len(asked) == 1:  # a tool has the only word, or it is no answer
        task = dataclasses.replace(task, allowed=evidence > 0)
    by_words = evidence * np.sqrt(evidence)
    by_words *= np.float32(best**_BEST_SHARE)
    likeness = find_likeness(task)
    scores = by_words if likeness is None else _add_meaning(task, likeness, by_words)

    def explain(row: int) -> tuple[ScorePart, ...]:
        found = [part for weighted in terms for part in explain_term(task.compiled, weighted, row)]
        factor = float(by_words[row]) / max(sum(part.score for part in found), 1e-9)
        parts = [ScorePart(part.term, part.field, part.score * factor) for part in found]
        by_meaning = float(scores[row] - by_words[row])
        if by_meaning > 0:
            parts.append(ScorePart(task.text, "meaning", by_meaning))
        return tuple(parts)

    def tell_by(row: int) -> MatchedBy:
        if scores[row] <= by_words[row]:
            return MatchedBy.WORDS
        return MatchedBy.BOTH if by_words[row] else MatchedBy.MEANING

    return Ranking(scores, explain, tell_by=tell_by)


def find_likeness(task: Task) -> Likeness | None:
    """None where there is no encoder, or it cannot answer, or knows nothing of the query."""
    meaning = _encode(task.encoder, task.text) if task.encoder else None
    if meaning is None or task.encoder is None or not meaning.known:
        return None
    weight = _SENTENCE_WEIGHT if task.encoder.is_sentence_encoder else _WORDS_WEIGHT
    likeness = Likeness(meaning.vector, weight * meaning.known)
    beside = _encode_beside(task)
    if beside is None:
        return likeness
    return dataclasses.replace(likeness, beside=beside.vector, beside_share=_WORDS_BESIDE * beside.known)


def _encode_beside(task: Task) -> QueryMeaning | None:
    """None where the tools have no word vectors beside others."""
    encoder = wordvectors.find_beside(task.encoder) if task.compiled.word_vectors.shape[1] else None
    return _encode(encoder, task.text) if encoder else None


def _encode(encoder: Encoder, text: str) -> QueryMeaning | None:
    """What is quoted in a request is material for the tool, and says little of which tool is meant."""
    return encoder.encode_query(words.cut_quoted(text))


def _rank_by_meaning(task: Task) -> Ranking:
    """No tool has any of the words: those of like meaning, where the encoder can tell."""
    scores = np.zeros(len(task.compiled), dtype=np.float32)

    def explain(row: int) -> tuple[ScorePart, ...]:
        return (ScorePart(task.text, "meaning", float(scores[row])),) if scores[row] else ()

    def tell_by(row: int) -> MatchedBy:
        return MatchedBy.MEANING if scores[row] else MatchedBy.WORDS

    ranking = Ranking(scores, explain, tell_by=tell_by)
    if task.encoder is None or not task.encoder.is_sentence_encoder or not len(scores):
        return ranking
    meaning = _encode(task.encoder, task.text)
    if meaning is None or not meaning.known:
        return ranking
    rows = _pick_candidates(task, Likeness(meaning.vector, 1.0), scores)
    similarity = task.compiled.vectors[rows] @ meaning.vector * np.float32(meaning.known)
    if task.allowed is not None:
        similarity *= task.allowed[rows]
    scores[rows] = similarity * (similarity >= task.meaning_floor)
    return ranking


def weigh_terms(compiled: Compiled, asked: Sequence[Word], allowed: Mask | None = None) -> list[WeightedTerm]:
    """The terms to look up, each once with its greatest weight. Single characters of a text without spaces
    count only beside a pair that is known.
    """
    chosen: dict[str, WeightedTerm] = {}
    for word in asked:
        is_known = word.joined is not None and word.joined in compiled.term_numbers
        weight = _PART_OF_KNOWN_RUN if is_known else 1.0
        for part in word.parts:
            for term in part.terms:
                _choose(chosen, WeightedTerm(term, weight, part.typed))
            if part.characters and any(has_visible(compiled, term, allowed) for term in part.terms):
                for character in part.characters:
                    _choose(chosen, WeightedTerm(character, 1.0, part.typed))
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


def _add_meaning(task: Task, likeness: Likeness, by_words: Scores) -> Scores:
    """Words or short vectors pick the candidates, full vectors score them; the others score nothing."""
    rows = _pick_candidates(task, likeness, by_words)
    known = by_words[rows]
    found = known + likeness.value(likeness.compare(task.compiled, rows))
    if task.allowed is not None:
        found *= task.allowed[rows]
    least = likeness.weight * (_LEAST_ALONE - float(_MIN_SIMILARITY))
    found[(known == 0) & (found < max(least, found.max(initial=0) * _LEAST_SHARE_ALONE))] = 0
    scores = np.zeros_like(by_words)
    scores[rows] = found
    return scores


def _pick_candidates(task: Task, likeness: Likeness, by_words: Scores) -> RowNumbers:
    """The rows that may be among the best. What is not allowed has no points by words."""
    words_bar = _find_bar(by_words, task.count)
    if words_bar > likeness.most:
        rows = np.flatnonzero(by_words >= words_bar - likeness.most)
        if len(rows) <= _FEW:
            return rows
    coarse = likeness.compare_coarsely(task.compiled)
    coarse += by_words
    if task.allowed is not None:
        coarse[~task.allowed] = _NEVER
    slack = task.compiled.coarse_slack * likeness.weight
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
