"""The catalog is searched as it is now: no hidden or removed tool, index or no index."""

import shutil
from pathlib import Path

import pytest

from catalog import process_memory
from catalog.access.actors import COMMAND_LINE
from catalog.domain.errors import InvalidInput
from catalog.domain.policy import DEFAULT_MEANING_FLOOR
from catalog.models import CatalogVersion, Server
from catalog.selectors import search
from catalog.services import reindex, tool_settings
from tests.harness.rows import make_policy, make_server, make_tool
from tests.harness.searches import watch_searches

pytestmark = pytest.mark.django_db


def find(query: str, ranker: str = "bm25f") -> list[str]:
    outcome = search.search_catalog(query=query, ranker=ranker, limit=5)
    return [hit.qualified_name for hit in outcome.hits]


def fill() -> None:
    make_tool(server=make_server(name="github"), name="create_issue", description="Open a new issue.")
    make_tool(server=make_server(name="slack"), name="send_message", description="Post to a channel.")
    reindex.bring_up_to_date()


@pytest.mark.parametrize("ranker", ["bm25f", "keyword", "overlap"])
def test_finds_with_every_ranker_and_explains(ranker: str) -> None:
    fill()
    assert find("create issue", ranker)[0] == "mcp__github__create_issue"
    hit = search.search_catalog(query="create issue", ranker=ranker, limit=5).hits[0]
    assert {part.term for part in hit.parts} >= {"create", "issue"}


def test_hidden_tool_is_not_found_even_by_name() -> None:
    fill()
    tool = make_tool(server=make_server(name="jira"), name="create_issue")
    reindex.bring_up_to_date()
    queries = ("create issue", "create_issue", tool.qualified_name, f"select:{tool.qualified_name}")
    assert all(tool.qualified_name in find(query) for query in queries)
    tool_settings.change_tool(tool=tool, actor=COMMAND_LINE, hidden=True)
    assert not any(tool.qualified_name in find(query) for query in queries)


def test_disabled_server_is_not_found() -> None:
    fill()
    Server.objects.filter(name="slack").update(enabled=False)
    CatalogVersion.advance()
    assert find("send message") == []


def test_answers_from_the_database_while_the_index_is_away(index_folder: Path) -> None:
    fill()
    shutil.rmtree(index_folder)
    process_memory.reset()
    assert find("create issue") == ["mcp__github__create_issue"]


def test_admin_keywords_are_searched() -> None:
    fill()
    tool = make_tool(server=make_server(name="ops"), name="rotate")
    tool_settings.change_tool(tool=tool, actor=COMMAND_LINE, keywords=["pagerduty"])
    reindex.bring_up_to_date()
    assert find("pagerduty") == [tool.qualified_name]


def test_query_that_is_too_long_is_refused() -> None:
    with pytest.raises(InvalidInput, match="500"):
        find("x" * 501)


def test_policy_says_how_near_in_meaning_is_near_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    fill()
    policy, searches = make_policy(meaning_floor=0.6), watch_searches(monkeypatch)
    search.search_policy(policy=policy, query="issue")
    search.find_tool_ids(query="issue", policy=policy)
    search.find_tool_ids(query="issue", policy=None)
    search.search_catalog(query="issue", ranker="bm25f", limit=5)
    assert searches.floors == [0.6, 0.6, DEFAULT_MEANING_FLOOR, DEFAULT_MEANING_FLOOR]
