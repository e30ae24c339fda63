"""Which words of a query no visible tool has."""

from catalog.search import words
from catalog.search.arrays import Mask
from catalog.search.compiled import Compiled


def find_unmatched(compiled: Compiled, text: str, allowed: Mask | None) -> list[str]:
    """The words as typed, each once. A run written together is known by its joined form or by its parts."""
    asked = words.telling_runs(text)
    terms = {term for run in asked for part in run.parts for term in part.terms}
    unknown = {term for term in terms if not has_visible(compiled, term, allowed)}
    unmatched: list[str] = []
    for run in asked if unknown else ():
        lacking = [part.typed for part in run.parts if unknown.issuperset(part.terms)]
        if lacking and (run.joined is None or not has_visible(compiled, run.joined, allowed)):
            unmatched.extend([run.typed] if len(lacking) == len(run.parts) else lacking)
    return list(dict.fromkeys(unmatched))


def has_visible(compiled: Compiled, term: str, allowed: Mask | None) -> bool:
    found = compiled.postings_of(term)
    return found is not None and (allowed is None or bool(allowed[found.rows].any()))
