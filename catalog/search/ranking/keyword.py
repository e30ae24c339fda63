"""The `keyword` ranker: points for keywords in names and texts; a name that is or contains the keyword counts
most.
"""

import re
from collections import Counter
from collections.abc import Iterator

from catalog.search.compiled import Compiled
from catalog.search.ranking.base import Ranking, Task
from catalog.search.ranking.points import Award, sum_awards

_NAME_EQUALS, _NAME_CONTAINS, _DESCRIPTION_CONTAINS, _PARAMETER_CONTAINS = 10.0, 5.0, 3.0, 1.0
_WHOLE_IN_NAME, _WHOLE_IN_DESCRIPTION = 8.0, 4.0

_KEYWORD = re.compile(r"\w[\w.-]*\w")  # of one character is inside everything


def rank(task: Task) -> Ranking:
    query = task.text.strip().lower()
    keywords = Counter(_KEYWORD.findall(query) or query.split())
    awards = [award for keyword, times in keywords.items() for award in _award(task.compiled, keyword, times)]
    whole = task.compiled.contains(query)
    awards.append(Award(query, "name", whole.in_name, _WHOLE_IN_NAME))
    awards.append(Award(query, "description", whole.in_description, _WHOLE_IN_DESCRIPTION))
    return sum_awards(task, awards)


def _award(compiled: Compiled, keyword: str, times: int) -> Iterator[Award]:
    """A keyword typed twice counts twice."""
    places = compiled.contains(keyword)
    yield Award(keyword, "name", places.is_name, _NAME_EQUALS * times)
    yield Award(keyword, "name", places.in_name & ~places.is_name, _NAME_CONTAINS * times)
    yield Award(keyword, "description", places.in_description, _DESCRIPTION_CONTAINS * times)
    yield Award(keyword, "parameter_names", places.in_parameters, _PARAMETER_CONTAINS * times)
