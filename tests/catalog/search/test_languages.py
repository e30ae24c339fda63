"""Search by words alone in nine languages, on sets written for this project."""

from pathlib import Path

import pytest

from catalog.search import evaluation

SETS = sorted(path.parent for path in Path(__file__).parent.glob("languages/*/tools.jsonl"))
LEAST_AT_FIVE = 0.8


def test_all_nine_sets_are_here() -> None:
    assert len(SETS) == 9


@pytest.mark.parametrize("folder", SETS, ids=lambda folder: folder.name)
def test_words_alone_find_tools(folder: Path) -> None:
    quality = evaluation.evaluate(evaluation.load_set(folder), "bm25f", None)
    assert quality.recall_at(5) >= LEAST_AT_FIVE
