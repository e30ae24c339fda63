"""The test console: what a search finds, and why."""

import pytest
from django.test import Client

from catalog.access import Role
from tests.pages import HTMX, signed_in, text_of, visible_text
from tests.rows import make_server, make_tool

pytestmark = pytest.mark.django_db


@pytest.fixture
def catalog() -> None:
    github, slack = make_server(name="github"), make_server(name="slack")
    make_tool(server=github, name="create_issue", description="Open a ticket about a defect.")
    make_tool(server=github, name="merge_branch", description="Join two branches.")
    make_tool(server=slack, name="send_message", description="Write to a channel.")


def test_empty_query_shows_how_to_ask() -> None:
    page = visible_text(signed_in(Role.VIEWER).get("/console/"))
    assert "How to ask" in page
    assert "select:" in page


@pytest.mark.usefixtures("catalog")
class TestSearch:
    def test_hit_is_explained_by_word_and_field(self) -> None:
        response = signed_in(Role.VIEWER).get("/console/?q=ticket")
        found = response.context["found"]
        assert [hit.tool.name for hit in found.hits] == ["create_issue"]
        assert [term.term for term in found.hits[0].terms] == ["ticket"]
        assert "1 tool would be loaded" in visible_text(response)

    @pytest.mark.parametrize("ranker", ["bm25f", "keyword", "overlap"])
    def test_ranker_is_taken_from_the_url(self, ranker: str) -> None:
        found = signed_in(Role.VIEWER).get(f"/console/?q=send+message&ranker={ranker}").context["found"]
        assert found.hits[0].tool.name == "send_message"

    def test_unknown_ranker_and_limit_give_way_to_the_defaults(self) -> None:
        response = signed_in(Role.VIEWER).get("/console/?q=send&ranker=magic&limit=-1")
        assert response.context["found"].hits[0].tool.name == "send_message"

    def test_required_word_and_selection_are_read_as_such(self) -> None:
        client = signed_in(Role.VIEWER)
        assert "required words" in visible_text(client.get("/console/?q=%2Bslack+send"))
        selected = visible_text(client.get("/console/?q=select:create_issue,nowhere"))
        assert "tools by name" in selected
        assert "No tool is named nowhere" in selected

    def test_words_that_no_tool_has_are_named(self) -> None:
        page = visible_text(signed_in(Role.VIEWER).get("/console/?q=zebra"))
        assert "No tool has the word zebra" in page
        assert "No tool matches" in page

    def test_mistake_is_told_in_place(self) -> None:
        response = signed_in(Role.VIEWER).get("/console/", {"q": "x" * 501}, headers=HTMX)
        assert response.status_code == 422
        assert "at most 500 characters" in visible_text(response)

    def test_part_is_the_results_alone(self) -> None:
        response = signed_in(Role.VIEWER).get("/console/?q=ticket", headers=HTMX)
        assert "<html" not in text_of(response)
        assert 'id="console-results"' in text_of(response)


def test_needs_sign_in_and_a_role_and_only_reads(client: Client) -> None:
    assert client.get("/console/").status_code == 302
    assert signed_in(Role.NONE).get("/console/").status_code == 403
    assert signed_in(Role.ADMIN).post("/console/").status_code == 405
