"""Shared terms: three points in the name, else one in the description; a query that is the name wins by
far.
"""

from collections.abc import Iterator

from catalog.domain.query import strip_quotes
from catalog.search.compiled import Compiled
from catalog.search.ranking.base import Ranking, Task
from catalog.search.ranking.points import Award, find_containing, find_equal, give, sum_awards

_NAME_CONTAINS, _DESCRIPTION_CONTAINS, _IS_NAME = 3.0, 1.0, 100.0
_KEPT_SHARE = 0.5


def rank(task: Task) -> Ranking:
    query = strip_quotes(task.text.lower())
    terms = query.split()
    awards = [award for term in terms for award in _award_term(task.compiled, term)]
    awards.append(give(query, "name", find_equal(task.compiled.folded_names, query), _IS_NAME))
    return sum_awards(task, terms, awards, _KEPT_SHARE)


def _award_term(compiled: Compiled, term: str) -> Iterator[Award]:
    named = find_containing(compiled.folded_names, term)
    yield give(term, "name", named, _NAME_CONTAINS)
    described = find_containing(compiled.folded_descriptions, term) & ~named
    yield give(term, "description", described, _DESCRIPTION_CONTAINS)
