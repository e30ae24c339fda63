"""Which words of a query no visible tool has."""

from catalog.search import words
from catalog.search.arrays import Mask
from catalog.search.compiled import Compiled


def find_unmatched(compiled: Compiled, text: str, allowed: Mask | None) -> list[str]:
    """The words as typed, each once. A run written together is known by its joined form or by its parts."""
    unmatched: list[str] = []
    for run in words.telling_runs(text):
        if run.joined is not None and has_visible(compiled, run.joined, allowed):
            continue
        lacking = [
            part.typed
            for part in run.parts
            if not any(has_visible(compiled, term, allowed) for term in part.terms)
        ]
        unmatched.extend([run.typed] if len(lacking) == len(run.parts) else lacking)
    return list(dict.fromkeys(unmatched))


def has_visible(compiled: Compiled, term: str, allowed: Mask | None) -> bool:
    if allowed is None:
        return compiled.tools_with(term) > 0
    found = compiled.postings_of(term)
    return found is not None and bool(allowed[found[0]].any())
