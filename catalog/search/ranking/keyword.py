"""Points for keywords found inside names and texts: a name that is the keyword, or holds it, weighs most."""

import re
from collections.abc import Iterator

from catalog.search.compiled import Compiled
from catalog.search.ranking.base import Ranking, Task
from catalog.search.ranking.points import Award, find_containing, find_equal, give, sum_awards

_NAME_EQUALS, _NAME_CONTAINS, _DESCRIPTION_CONTAINS, _PARAMETER_CONTAINS = 10.0, 5.0, 3.0, 1.0
_WHOLE_IN_NAME, _WHOLE_IN_DESCRIPTION = 8.0, 4.0

_KEYWORD = re.compile(r"\w[\w.-]*\w")  # of one character is inside everything


def rank(task: Task) -> Ranking:
    query = task.text.strip().lower()
    keywords = _KEYWORD.findall(query) or query.split()
    awards = [award for keyword in keywords for award in _award_keyword(task.compiled, keyword)]
    awards += _award_whole(task.compiled, query)
    return sum_awards(task, keywords, awards)


def _award_keyword(compiled: Compiled, keyword: str) -> Iterator[Award]:
    equals = find_equal(compiled.folded_names, keyword)
    yield give(keyword, "name", equals, _NAME_EQUALS)
    yield give(keyword, "name", find_containing(compiled.folded_names, keyword) & ~equals, _NAME_CONTAINS)
    described = find_containing(compiled.folded_descriptions, keyword)
    yield give(keyword, "description", described, _DESCRIPTION_CONTAINS)
    taking = find_containing(compiled.folded_parameters, keyword)
    yield give(keyword, "parameter_names", taking, _PARAMETER_CONTAINS)


def _award_whole(compiled: Compiled, query: str) -> Iterator[Award]:
    yield give(query, "name", find_containing(compiled.folded_names, query), _WHOLE_IN_NAME)
    described = find_containing(compiled.folded_descriptions, query)
    yield give(query, "description", described, _WHOLE_IN_DESCRIPTION)
