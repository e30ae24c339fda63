"""Finds the words of a query that no visible tool has."""

from catalog.search import words
from catalog.search.arrays import Mask
from catalog.search.compiled import Compiled


def find_unmatched(compiled: Compiled, text: str, allowed: Mask | None) -> list[str]:
    """The words as typed, each once. A compound word is known by its joined form or by its parts."""
    asked = words.significant_words(text)
    terms = {term for word in asked for part in word.parts for term in part.terms}
    unknown = {term for term in terms if not has_visible(compiled, term, allowed)}
    unmatched: list[str] = []
    for word in asked if unknown else ():
        lacking = [part.typed for part in word.parts if unknown.issuperset(part.terms)]
        if lacking and (word.joined is None or not has_visible(compiled, word.joined, allowed)):
            unmatched.extend([word.typed] if len(lacking) == len(word.parts) else lacking)
    return list(dict.fromkeys(unmatched))


def has_visible(compiled: Compiled, term: str, allowed: Mask | None) -> bool:
    found = compiled.postings_of(term)
    return found is not None and (allowed is None or bool(allowed[found.rows].any()))
