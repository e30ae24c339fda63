"""The rankers: `bm25f` by words and meaning, `keyword` and `overlap` as other systems have them."""

from collections.abc import Callable

from catalog.search.ranking import bm25f, keyword, overlap
from catalog.search.ranking.base import Ranking, Task

RANKERS: dict[str, Callable[[Task], Ranking]] = {
    "bm25f": bm25f.rank,
    "keyword": keyword.rank,
    "overlap": overlap.rank,
}

__all__ = ["RANKERS", "Ranking", "Task"]
