"""The page about search names what is there, with the numbers that are in force."""

import json
import re
from pathlib import Path

import pytest

from catalog.domain import limits
from catalog.domain.choices import Ranker
from catalog.domain.policy import DEFAULT_MEANING_FLOOR
from catalog.domain.query import parse_query
from catalog.search.evaluation import evaluate, load_set
from catalog.search.request import MatchedBy
from tests.harness.instance import ROOT

PAGE = (ROOT / "docs/search.md").read_text()
WORDS_IN_FIVE_MINUTES = 1500


@pytest.mark.parametrize("ranker", Ranker)
def test_every_ranker_is_explained(ranker: Ranker) -> None:
    assert re.search(rf"^\| `{ranker}`", PAGE, re.MULTILINE)


@pytest.mark.parametrize("by", MatchedBy)
def test_every_way_to_match_is_named(by: MatchedBy) -> None:
    assert f"`{by}`" in PAGE.partition("Each match has `by`")[2].partition("\n")[0]


def test_numbers_are_those_in_force() -> None:
    for number, what in (
        (limits.QUERY_CHARS, "by meaning; at most {} characters"),
        (limits.PATTERN_CHARS, "parameter's name; at most {} characters"),
        (limits.SELECT_NAMES, "qualified name, at most {};"),
        (DEFAULT_MEANING_FLOOR, "\n{} unless changed"),
    ):
        assert what.format(number) in PAGE, what


@pytest.mark.parametrize(
    ("query", "form"),
    [
        ("create an issue", "keywords"),
        ("+slack send", "required"),
        ("select:Read,mcp__github__create_issue", "select"),
    ],
)
def test_queries_of_the_table_are_read_as_it_says(query: str, form: str) -> None:
    assert f"| `{query}` |" in PAGE
    assert parse_query(query).form == form


def test_example_of_a_set_can_be_measured(tmp_path: Path) -> None:
    [line] = re.findall(r"^```json\n(.*)\n```$", PAGE, re.MULTILINE)
    [server, name] = json.loads(line)["gold"][0].split("/")
    tool = {"server": server, "name": name, "description": "When could all hop on a call?"}
    (tmp_path / "tools.jsonl").write_text(json.dumps(tool))
    (tmp_path / "queries.jsonl").write_text(line)
    assert evaluate(load_set(tmp_path), Ranker.BM25F, None).recall_at(1) == 1


def test_links_lead_somewhere() -> None:
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", PAGE):
        assert (ROOT / "docs" / link).exists(), link


def test_page_is_read_in_five_minutes() -> None:
    assert len(PAGE.split()) < WORDS_IN_FIVE_MINUTES
