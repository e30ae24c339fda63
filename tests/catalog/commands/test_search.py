"""`manage.py search` finds what an agent would, from the shell."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from catalog.search.request import MatchedBy
from catalog.services import derived_state
from tests.harness.rows import make_policy, make_server, make_tool
from tests.harness.searches import watch_searches

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def catalog() -> None:
    make_tool(server=make_server(name="github"), name="create_issue", description="Open a new issue.")
    make_tool(server=make_server(name="slack"), name="send_message", description="Post to a channel.")
    make_policy(slug="chat", visible=["slack/*"])
    derived_state.bring_up_to_date()


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("search", *arguments, stdout=out)
    return out.getvalue()


def test_hits_are_listed_best_first() -> None:
    assert run("create issue").splitlines()[0].split()[1] == "mcp__github__create_issue"


def test_json_is_alone_and_explains() -> None:
    found = json.loads(run("create issue", "--json", "--ranker", "keyword", "--limit", "1"))
    assert (found["outcome"], found["form"], len(found["matches"])) == ("matched", "keywords", 1)
    match = found["matches"][0]
    assert (match["server"], match["tool"]) == ("github", "create_issue")
    assert {"term", "field", "score"} <= set(match["parts"][0])
    assert match["by"] == "words"


def test_what_only_meaning_found_is_told_as_that(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "nearest in meaning" not in run("create issue")
    watch_searches(monkeypatch, by=MatchedBy.MEANING)
    printed = run("create issue").splitlines()
    assert printed[0].split()[1:3] == ["mcp__github__create_issue", "meaning"]
    assert "none of these has a word of the query" in printed[-1]
    assert json.loads(run("create issue", "--json"))["matches"][0]["by"] == "meaning"


def test_policy_shows_only_its_tools() -> None:
    assert "mcp__github__create_issue" not in run("create issue", "--policy", "chat")
    assert "mcp__slack__send_message" in run("send message", "--policy", "chat")


def test_policy_gives_no_more_than_it_gives_an_agent() -> None:
    make_tool(server=make_server(name="mail"), name="send_mail", description="Send a message by mail.")
    make_policy(slug="terse", max_results=1)
    derived_state.bring_up_to_date()
    assert len(run("send message", "--policy", "terse", "--limit", "50").splitlines()) == 1
    assert len(run("send message", "--limit", "50").splitlines()) == 2


def test_unknown_words_are_named() -> None:
    printed = run("xylophone")
    assert "nothing found (no_match)" in printed
    assert "no tool has the words xylophone" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("x", "--policy", "nowhere"), "no policy nowhere"),
        (("x", "--limit", "51"), "from 1 to 50"),
        (("x" * 501,), "500"),
    ],
)
def test_mistakes_are_said_in_words(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        run(*arguments)
