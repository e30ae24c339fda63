"""Points for words found inside names and texts: a name that is the word, or holds it, weighs most."""

from catalog.search.ranking.base import Ranking, Task
from catalog.search.ranking.points import Points, award_points
from catalog.search.request import ScorePart

_NAME_EQUALS, _NAME_CONTAINS, _DESCRIPTION_CONTAINS, _PARAMETER_CONTAINS = 10.0, 5.0, 3.0, 1.0
_WHOLE_IN_NAME, _WHOLE_IN_DESCRIPTION = 8.0, 4.0


def rank(task: Task) -> Ranking:
    return award_points(task, _judge)


def _judge(query: str, terms: tuple[str, ...], name: str, description: str, parameters: list[str]) -> Points:
    for term in terms:
        if name == term:
            yield ScorePart(term, "name", _NAME_EQUALS)
        elif term in name:
            yield ScorePart(term, "name", _NAME_CONTAINS)
        if term in description:
            yield ScorePart(term, "description", _DESCRIPTION_CONTAINS)
        if any(term in parameter for parameter in parameters):
            yield ScorePart(term, "parameter_names", _PARAMETER_CONTAINS)
    if query in name:
        yield ScorePart(query, "name", _WHOLE_IN_NAME)
    if query in description:
        yield ScorePart(query, "description", _WHOLE_IN_DESCRIPTION)
