"""How hits are ordered: `bm25f` by words and meaning, `keyword` and `overlap` for those who come from other
systems.
"""

from collections.abc import Callable

from catalog.search.ranking import bm25f, keyword, overlap
from catalog.search.ranking.base import Ranking, Task

RANKERS: dict[str, Callable[[Task], Ranking]] = {
    "bm25f": bm25f.rank,
    "keyword": keyword.rank,
    "overlap": overlap.rank,
}

__all__ = ["RANKERS", "Ranking", "Task"]
