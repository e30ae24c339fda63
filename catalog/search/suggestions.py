"""Spelling suggestions: for words that no visible tool has, similar words that one does have."""

from collections.abc import Callable, Iterator

from catalog.domain.query import Keywords, Required
from catalog.search import words
from catalog.search.arrays import Mask
from catalog.search.compiled import Compiled
from catalog.search.request import SearchOutcome, SearchRequest, Suggestion
from catalog.search.unmatched import has_visible

SuggestSpellings = Callable[[str], tuple[str, ...]]

_MAX_TERMS = 3
_SHORT_QUERY_WORDS = 4
_MIN_CHARS = 4


def suggest(
    compiled: Compiled, request: SearchRequest, outcome: SearchOutcome, spell: SuggestSpellings
) -> tuple[Suggestion, ...]:
    """Only for short queries and for those without hits, because a suggestion costs far more than
    a search.
    """
    query = request.query
    if not isinstance(query, Keywords | Required) or not outcome.unmatched_terms:
        return ()
    if outcome.hits and len(words.significant_words(query.text)) > _SHORT_QUERY_WORDS:
        return ()
    allowed = None if request.visible is None else compiled.mask_of(request.visible)
    return tuple(_suggest_each(compiled, outcome.unmatched_terms[:_MAX_TERMS], allowed, spell))


def _suggest_each(
    compiled: Compiled, terms: tuple[str, ...], allowed: Mask | None, spell: SuggestSpellings
) -> Iterator[Suggestion]:
    for term in terms:
        if len(term) < _MIN_CHARS or not term.isalpha():
            continue
        nearby = tuple(word for word in spell(term) if _is_visible(compiled, word, allowed))
        if nearby:
            yield Suggestion(term, nearby)


def _is_visible(compiled: Compiled, word: str, allowed: Mask | None) -> bool:
    """Words of hidden tools must not be revealed."""
    return any(has_visible(compiled, term, allowed) for term in words.document_terms(word))
