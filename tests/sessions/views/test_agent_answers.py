"""The page with an agent's first answer: the same as by REST, in every format."""

import html
import json
import re
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from catalog.access.actors import COMMAND_LINE
from catalog.access.roles import Role
from catalog.models import Policy
from catalog.services import policies
from sessions.selectors.samples import SHOWN_CHARS
from sessions.views.agent_answers import WORDS
from tests.harness.pages import HTMX, signed_in, text_of, visible_text
from tests.harness.rows import make_server, make_tool
from tests.sessions.api.calling import fill_catalog, follow, make_agent

pytestmark = pytest.mark.django_db

PAGE, FILE = "/policies/default/agent/", "/policies/default/agent.json"
FORMS = [
    "format=mcp",
    "format=anthropic",
    "format=anthropic&hosted=bm25",
    "format=anthropic&hosted=regex",
    "format=openai",
    "format=openai&hosted=true",
    "format=stub",
]


@pytest.fixture(autouse=True)
def filled(db: None) -> None:
    fill_catalog()


def change_default(**fields: Any) -> None:
    policies.change_policy(policy=Policy.objects.get(slug="default"), changed=fields, actor=COMMAND_LINE)
    follow()


def block(response: Any, identity: str) -> str:
    """What stands in a block of code."""
    found = re.search(
        rf'<pre class="code[^"]*" id="{identity}"[^>]*>(.*?)</pre>', text_of(response), re.DOTALL
    )
    assert found, f"no {identity}"
    return html.unescape(found[1])


class TestPage:
    @pytest.mark.parametrize("query", FORMS)
    def test_shows_the_list_and_the_prompt_that_the_api_gives(self, query: str) -> None:
        change_default(never_defer=["slack/*"])
        sent = make_agent().read(f"/policies/default/tools?{query}")
        page = signed_in(Role.VIEWER).get(f"{PAGE}?{query}")
        assert json.loads(block(page, "tools-text")) == sent["tools"]
        assert block(page, "prompt-text") == sent["prompt"]
        assert f"{sent['tokens']['sent']:,} tokens" in visible_text(page)

    def test_every_form_but_auto_is_among_those_compared(self) -> None:
        assert len(FORMS) == len(WORDS) - 1

    @pytest.mark.parametrize(("query", "is_apart"), [("mcp", True), ("stub", True), ("anthropic", False)])
    def test_search_tool_is_shown_where_the_list_does_not_hold_it(self, query: str, is_apart: bool) -> None:
        sent = make_agent().read(f"/policies/default/tools?format={query}")
        page = signed_in(Role.VIEWER).get(f"{PAGE}?format={query}")
        assert ('id="search-tool-text"' in text_of(page)) is is_apart
        if is_apart:
            assert json.loads(block(page, "search-tool-text")) == sent["search_tool"]

    def test_sums_name_their_parts(self) -> None:
        change_default(never_defer=["slack/*"])
        answer = signed_in(Role.VIEWER).get(PAGE).context["answer"]
        parts = (answer.tokens.tools, answer.tokens.search_tool, answer.tokens.prompt)
        assert sum(parts) == make_agent().read("/policies/default/tools")["tokens"]["sent"]
        assert min(parts) > 0

    @pytest.mark.parametrize(
        ("model", "form"),
        [("claude-opus-4-5", "anthropic"), ("gpt-6", "openai"), ("llama", "mcp"), ("", "mcp")],
    )
    def test_model_chooses_the_form(self, model: str, form: str) -> None:
        page = signed_in(Role.VIEWER).get(f"{PAGE}?format=auto&model={model}")
        assert page.context["answer"].form.format == form
        assert 'value="auto"' in text_of(page)

    def test_says_so_when_nothing_is_deferred(self) -> None:
        change_default(mode="off")
        page = signed_in(Role.VIEWER).get(PAGE)
        assert "Nothing is deferred" in visible_text(page)
        assert len(json.loads(block(page, "tools-text"))) == 5

    def test_unknown_form_gives_way_to_mcp(self) -> None:
        page = signed_in(Role.VIEWER).get(f"{PAGE}?format=xml&hosted=perhaps")
        assert page.status_code == 200
        assert page.context["answer"].form.format == "mcp"

    def test_long_list_is_shown_in_part_and_says_so(self) -> None:
        server = make_server(name="big")
        for number in range(40):
            make_tool(server=server, name=f"tool_{number:02}", description="x" * 2_000)
        change_default(mode="off")
        page = signed_in(Role.VIEWER).get(PAGE)
        assert "mcp__big__tool_00" in text_of(page)
        assert "mcp__big__tool_39" not in text_of(page)
        assert "Copying and the file take all of it" in visible_text(page)
        assert len(block(page, "tools-text")) < SHOWN_CHARS + 1_000

    def test_unseen_characters_are_shown(self) -> None:
        make_tool(server=make_server(name="odd"), name="odd", description="a\u202eb\u200bc\u2028d")
        change_default(mode="off")
        shown = block(signed_in(Role.VIEWER).get(PAGE), "tools-text")
        assert "\u202e" not in shown
        assert "\\u{202e}" in re.sub(r"<[^>]+>", "", shown)

    def test_part_is_for_htmx(self) -> None:
        part = signed_in(Role.VIEWER).get(PAGE, headers=HTMX)
        assert "<html" not in text_of(part)
        assert 'id="agent-answer"' in text_of(part)

    def test_costs_the_same_queries_for_many_tools(
        self, django_assert_max_num_queries: DjangoAssertNumQueries
    ) -> None:
        client = signed_in(Role.VIEWER)
        client.get(PAGE)
        with django_assert_max_num_queries(7):
            client.get(PAGE)

    def test_policy_page_leads_here(self) -> None:
        assert PAGE in text_of(signed_in(Role.VIEWER).get("/policies/default/"))


class TestFile:
    @pytest.mark.parametrize("query", FORMS)
    def test_is_byte_for_byte_what_the_api_sends(self, query: str) -> None:
        sent = make_agent().get(f"/policies/default/tools?{query}")
        file = signed_in(Role.VIEWER).get(f"{FILE}?{query}")
        assert file.content == sent.content
        assert file.headers["Content-Type"] == "application/json"
        assert file.headers["Content-Disposition"].startswith('attachment; filename="default-')

    def test_list_alone(self) -> None:
        sent = make_agent().read("/policies/default/tools?format=anthropic")
        assert signed_in(Role.VIEWER).get(f"{FILE}?format=anthropic&part=tools").json() == sent["tools"]

    def test_of_a_model_is_the_form_it_takes(self) -> None:
        sent = make_agent().get("/policies/default/tools?format=anthropic&hosted=true")
        file = signed_in(Role.VIEWER).get(f"{FILE}?format=auto&model=claude-opus-4-5")
        assert file.content == sent.content


@pytest.mark.parametrize("path", [PAGE, FILE])
def test_stranger_wrong_method_and_missing_policy_are_refused(client: Client, path: str) -> None:
    assert client.get(path).status_code == 302
    assert signed_in(Role.NONE).get(path).status_code == 403
    assert signed_in(Role.ADMIN).post(path).status_code == 405
    assert signed_in(Role.VIEWER).get(path.replace("default", "nothing")).status_code == 404


def test_prompt_without_servers_is_explained() -> None:
    client = signed_in(Role.EDITOR)
    assert "It names no server" not in visible_text(client.get(PAGE))
    change_default(prompt_budget_tokens=30)
    response = client.get(PAGE)
    assert "It names no server" in visible_text(response)
    assert "prompt budget of 30 tokens" in visible_text(response)
    assert 'href="/policies/default/edit/">Change the prompt budget' in text_of(response)
