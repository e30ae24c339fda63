"""Rankers side by side: places, moves, and the lines between them."""

from catalog.domain.choices import Outcome, Ranker, Reason
from catalog.search.request import Hit
from sessions.offers.offer import OfferedTool
from sessions.offers.offer_search import Found
from sessions.offers.rendering.wire import write_text
from sessions.services.search_trials import RankerTrial
from sessions.views.rank_chart import RankChart, draw_rank_chart


def find(name: str) -> Found:
    text = write_text(id=1, digest="", name=name, server="s", kind="mcp", definition={"name": name}, chars=4)
    return Found(OfferedTool(text, Outcome.DEFER, Reason.MODE_ALWAYS), Hit(1, name, 1.0))


def draw(bm25f: str, keyword: str, overlap: str) -> RankChart:
    orders = {Ranker.BM25F: bm25f, Ranker.KEYWORD: keyword, Ranker.OVERLAP: overlap}
    return draw_rank_chart([RankerTrial(ranker, tuple(map(find, order))) for ranker, order in orders.items()])


def test_moves_are_told_against_the_first_column() -> None:
    chart = draw("abc", "bac", "cxa")
    assert [[entry.move for entry in column.entries] for column in chart.columns] == [
        [0, 0, 0],
        [1, -1, 0],
        [2, None, -2],
    ]


def test_lines_join_neighbours_and_say_their_course() -> None:
    chart = draw("abc", "bac", "bxa")
    first, second, third = chart.columns
    assert first.lines == []
    assert [(line.start, line.end, line.course) for line in second.lines] == [
        (1.5, 0.5, "rises"),
        (0.5, 1.5, "falls"),
        (2.5, 2.5, "level"),
    ]
    assert [(line.start, line.end) for line in third.lines] == [(0.5, 0.5), (1.5, 2.5)]


def test_what_a_ranker_loses_is_named() -> None:
    chart = draw("abc", "b", "")
    assert [[tool.name for tool in column.lost] for column in chart.columns] == [
        [],
        ["a", "c"],
        ["a", "b", "c"],
    ]
    assert chart.rows == 3


def test_same_order_everywhere_is_told() -> None:
    assert draw("ab", "ab", "ab").is_alike
    assert not draw("ab", "ba", "ab").is_alike
    assert draw("", "", "").rows == 0
