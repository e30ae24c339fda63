"""Measures search quality on a set of tools and queries with known answers."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catalog.domain.choices import Kind
from catalog.domain.errors import InvalidInput
from catalog.domain.names import ToolId, qualify
from catalog.domain.query import Keywords
from catalog.search.answers import answer
from catalog.search.compiled import Compiled
from catalog.search.compiling import compile_documents
from catalog.search.documents import ToolDocument, make_document
from catalog.search.meaning import Encoder
from catalog.search.request import SearchRequest

CUTS = (1, 3, 5, 8)
NDCG_CUT = 10

Ranked = Sequence[int]
RankText = Callable[[str], Ranked]


@dataclass(frozen=True, slots=True)
class Question:
    """A query and its answers: groups of alternatives, each a set of tool ids of which one suffices."""

    text: str
    groups: tuple[frozenset[int], ...]


@dataclass(frozen=True, slots=True)
class QualitySet:
    name: str
    documents: tuple[ToolDocument, ...]
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class Quality:
    """Means over the questions, as fractions; `recall` has one value for each of `CUTS`."""

    recall: tuple[float, ...]
    mrr: float
    ndcg: float

    def recall_at(self, cut: int) -> float:
        """For one of `CUTS`."""
        return self.recall[CUTS.index(cut)]

    def to_mapping(self) -> dict[str, float]:
        recall = {f"R@{cut}": round(value, 4) for cut, value in zip(CUTS, self.recall, strict=True)}
        return {**recall, "MRR": round(self.mrr, 4), f"nDCG@{NDCG_CUT}": round(self.ndcg, 4)}


def load_set(folder: Path) -> QualitySet:
    """Read `tools.jsonl` and `queries.jsonl`. Raises `OSError`, or `InvalidInput` that names the line."""
    documents = []
    ids: dict[str, list[int]] = {}
    for number, definition in enumerate(_read_lines(folder / "tools.jsonl", ("server", "name"))):
        server, name = definition["server"], definition["name"]
        ids.setdefault(f"{server}/{name}", []).append(number)
        qualified_name = qualify(ToolId(Kind.MCP, server, name))
        documents.append(make_document(definition, id=number, qualified_name=qualified_name, server=server))
    questions = (_make_question(line, ids) for line in _read_lines(folder / "queries.jsonl", ("query",)))
    return QualitySet(folder.resolve().name, tuple(documents), tuple(questions))


def make_searcher(compiled: Compiled, ranker: str, encoder: Encoder | None) -> RankText:
    """Rank every tool for a text, taken as plain keywords whatever its length or signs."""

    def search(text: str) -> Ranked:
        request = SearchRequest(Keywords(text), ranker=ranker, max_results=max(len(compiled), 1))
        return [hit.id for hit in answer(compiled, request, encoder).hits]

    return search


def evaluate(quality_set: QualitySet, ranker: str, encoder: Encoder | None) -> Quality:
    compiled = compile_documents(quality_set.documents, encoder)
    return measure_quality(quality_set.questions, make_searcher(compiled, ranker, encoder))


def measure_quality(questions: Sequence[Question], search: RankText) -> Quality:
    return mean([score_ranking(search(question.text), question.groups) for question in questions])


def mean(judged: Sequence[Quality]) -> Quality:
    count = max(len(judged), 1)
    recall = tuple(sum(each.recall[at] for each in judged) / count for at in range(len(CUTS)))
    return Quality(
        recall, sum(each.mrr for each in judged) / count, sum(each.ndcg for each in judged) / count
    )


def score_ranking(ranked: Ranked, groups: tuple[frozenset[int], ...]) -> Quality:
    """A group is found at the best rank of its alternatives; the others gain nothing."""
    places = {tool: place for place, tool in enumerate(ranked)}
    first = [min((places[tool] for tool in group if tool in places), default=math.inf) for group in groups]
    wanted = max(len(groups), 1)
    recall = tuple(sum(place < cut for place in first) / wanted for cut in CUTS)
    gain = sum(1 / math.log2(place + 2) for place in first if place < NDCG_CUT)
    ideal = sum(1 / math.log2(place + 2) for place in range(min(wanted, NDCG_CUT)))
    return Quality(recall, 1 / (min(first, default=math.inf) + 1), gain / ideal)


def _make_question(line: Mapping[str, Any], ids: Mapping[str, Sequence[int]]) -> Question:
    groups = line.get("gold_groups") or [[gold] for gold in line.get("gold", ())]
    return Question(
        line["query"],
        tuple(frozenset(tool for gold in group for tool in ids.get(gold, ())) for group in groups),
    )


def _read_lines(path: Path, wanted: Sequence[str]) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield _read_line(line, f"{path.name}:{number}", wanted)


def _read_line(line: str, place: str, wanted: Sequence[str]) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise InvalidInput.at(place, f"not JSON: {error}") from error
    lacking = [key for key in wanted if not isinstance(value, dict) or not isinstance(value.get(key), str)]
    if lacking:
        raise InvalidInput.at(place, f"want an object with the text {' and '.join(lacking)}")
    checked: dict[str, Any] = value
    return checked
