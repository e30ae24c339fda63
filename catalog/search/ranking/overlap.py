"""Shared terms: three points in the name, else one in the description; a query that is the name wins by
far.
"""

from collections.abc import Iterator

from catalog.domain.query import strip_quotes
from catalog.search.compiled import Compiled
from catalog.search.ranking.base import Ranking, Task
from catalog.search.ranking.points import Award, count_terms, give, sum_awards

_NAME_CONTAINS, _DESCRIPTION_CONTAINS, _IS_NAME = 3.0, 1.0, 100.0
_KEPT_SHARE = 0.5


def rank(task: Task) -> Ranking:
    query = strip_quotes(task.text.lower())
    terms = count_terms(query.split())
    awards = [award for term, times in terms for award in _award(task.compiled, term, times)]
    awards.append(give(query, "name", task.compiled.contains(query).is_name, _IS_NAME))
    return sum_awards(task, awards, _KEPT_SHARE)


def _award(compiled: Compiled, term: str, times: int) -> Iterator[Award]:
    """A term typed twice counts twice."""
    places = compiled.contains(term)
    yield give(term, "name", places.in_name, _NAME_CONTAINS * times)
    yield give(term, "description", places.in_description & ~places.in_name, _DESCRIPTION_CONTAINS * times)
