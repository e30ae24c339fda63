"""Search quality: the measures are what they say."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from catalog.domain.errors import InvalidInput
from catalog.search.evaluation import Question, evaluate, load_set, measure_quality

ONE, TWO = frozenset({1}), frozenset({2})


def write_set(folder: Path, tools: Sequence[Any], queries: Sequence[Any]) -> Path:
    folder.mkdir()
    for name, lines in (("tools", tools), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    return folder


def test_recall_is_the_share_of_the_wanted_among_the_first() -> None:
    quality = measure_quality([Question("q", (ONE, TWO))], lambda _: [9, 1, 8, 7, 2])
    assert quality.to_mapping() == {
        "R@1": 0,
        "R@3": 0.5,
        "R@5": 1,
        "R@8": 1,
        "MRR": 0.5,
        "nDCG@10": pytest.approx((0.6309 + 0.3869) / 1.6309, abs=1e-3),
    }


def test_any_alternative_of_a_group_will_do() -> None:
    quality = measure_quality([Question("q", (frozenset({1, 2}),))], lambda _: [2, 1])
    assert (quality.recall[0], quality.mrr, quality.ndcg) == (1, 1, 1)


def test_nothing_found_is_nothing_gained() -> None:
    quality = measure_quality([Question("q", (ONE,))], lambda _: [])
    assert set(quality.to_mapping().values()) == {0}


def test_means_are_over_questions() -> None:
    quality = measure_quality([Question("a", (ONE,)), Question("b", (TWO,))], lambda _: [1])
    assert quality.recall[0] == 0.5


def test_a_set_is_read_and_ranked(tmp_path: Path) -> None:
    tools = [
        {"server": "a/b", "name": "x/y", "description": "apples", "inputSchema": {}},
        {"server": "s", "name": "pears", "description": None},
    ]
    queries = [
        {"query": "apples +select: " + "please " * 200, "gold": ["a/b/x/y"]},
        {"query": "pears", "gold": ["s/pears", "a/b/x/y"], "gold_groups": [["s/pears", "a/b/x/y"]]},
    ]
    quality_set = load_set(write_set(tmp_path / "set", tools, queries))
    assert (quality_set.name, len(quality_set.documents)) == ("set", 2)
    for ranker in ("bm25f", "keyword", "overlap"):
        assert evaluate(quality_set, ranker, None).recall[0] == 1


@pytest.mark.parametrize("line", ["{", "[]", '{"server": "s"}', '{"server": 1, "name": "x"}'])
def test_a_bad_line_is_named(tmp_path: Path, line: str) -> None:
    folder = write_set(tmp_path / "set", [{"server": "s", "name": "t"}], [])
    (folder / "tools.jsonl").write_text(f'{{"server": "s", "name": "t"}}\n{line}\n')
    with pytest.raises(InvalidInput, match=r"tools\.jsonl:2"):
        load_set(folder)
