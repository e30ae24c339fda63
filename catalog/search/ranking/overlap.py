"""The `overlap` ranker: three points for a term in the name, else one in the description; a query equal to
the name wins by far.
"""

from collections import Counter
from collections.abc import Iterator

from catalog.domain.query import strip_punctuation
from catalog.search.compiled import Compiled
from catalog.search.ranking.base import Ranking, Task
from catalog.search.ranking.points import Award, sum_awards

_NAME_CONTAINS, _DESCRIPTION_CONTAINS, _IS_NAME = 3.0, 1.0, 100.0
_KEPT_SHARE = 0.5


def rank(task: Task) -> Ranking:
    terms = Counter(strip_punctuation(task.text.lower()).split())
    awards = [award for term, times in terms.items() for award in _award(task.compiled, term, times)]
    return sum_awards(task, awards, kept_share=_KEPT_SHARE, exact_points=_IS_NAME)


def _award(compiled: Compiled, term: str, times: int) -> Iterator[Award]:
    """A term typed twice counts twice."""
    places = compiled.contains(term)
    yield Award(term, "name", places.in_name, _NAME_CONTAINS * times)
    yield Award(term, "description", places.in_description & ~places.in_name, _DESCRIPTION_CONTAINS * times)
