"""Shared terms: three points in the name, else one in the description; a query that is the name wins by far."""

from catalog.domain.query import strip_quotes
from catalog.search.ranking.base import Ranking, Task
from catalog.search.ranking.points import Points, award_points
from catalog.search.request import ScorePart

_NAME_CONTAINS, _DESCRIPTION_CONTAINS, _IS_NAME = 3.0, 1.0, 100.0
_KEPT_SHARE = 0.5


def rank(task: Task) -> Ranking:
    return award_points(task, _judge, kept_share=_KEPT_SHARE)


def _judge(query: str, terms: tuple[str, ...], name: str, description: str, _parameters: list[str]) -> Points:
    for term in terms:
        if term in name:
            yield ScorePart(term, "name", _NAME_CONTAINS)
        elif term in description:
            yield ScorePart(term, "description", _DESCRIPTION_CONTAINS)
    if strip_quotes(query) == name:
        yield ScorePart(query, "name", _IS_NAME)
