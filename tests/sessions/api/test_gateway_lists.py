"""The dry run of `tools/list`: what a client gets, page by page, in its revision's form."""

import json
from typing import Any

import pytest
from mcp_types.methods import serialize_server_result
from mcp_types.version import KNOWN_PROTOCOL_VERSIONS
from pytest_django import DjangoAssertNumQueries

from catalog.domain.choices import Kind, Mode, Transport
from catalog.models import Policy, Server
from catalog.services import decisions
from sessions.domain.revisions import Revision
from sessions.offers import gateway_offer
from tests.harness.rows import make_policy, make_server, make_tool
from tests.sessions.api.calling import Agent, make_agent

pytestmark = pytest.mark.django_db

OWN_TOOLS = ["search_tools", "describe_tools", "call_read_tool", "call_tool", "read_result"]
PATH = "/policies/default/mcp"


@pytest.fixture
def server() -> Server:
    """With six tools, the first of which is loaded at once."""
    Policy.objects.filter(slug="default").update(mode=Mode.ALWAYS, never_defer=["*tool_0"])
    server = make_server(name="notes", transport=Transport.HTTP, url="https://notes.example.com/")
    for number in range(6):
        schema = {"type": "object", "properties": {"n": {"type": "integer", "default": None}}}
        make_tool(server=server, name=f"tool_{number}", input_schema=schema, output_schema={"type": "object"})
    decisions.bring_up_to_date()
    return server


@pytest.fixture
def admin() -> Agent:
    return make_agent(admin=True)


def names_in(answer: dict[str, Any]) -> list[str]:
    return [tool["name"] for tool in answer["tools"]]


@pytest.mark.usefixtures("server")
class TestExposure:
    def test_search_lists_our_tools_and_those_that_load(self, admin: Agent) -> None:
        answer = admin.read(PATH)
        assert names_in(answer) == [*OWN_TOOLS, "notes__tool_0"]
        assert (answer["exposure"], answer["names"]) == ("search", "qualified")
        assert "nextCursor" not in answer

    def test_native_lists_every_tool(self, admin: Agent) -> None:
        answer = admin.read(f"{PATH}?expose=native")
        assert names_in(answer) == ["read_result", *(f"notes__tool_{n}" for n in range(6))]
        pinned = [
            tool["name"] for tool in answer["tools"] if tool.get("_meta", {}).get("anthropic/alwaysLoad")
        ]
        assert pinned == ["read_result", "notes__tool_0"]

    def test_tokens_are_those_of_what_is_listed(self, admin: Agent, server: Server) -> None:
        before = [admin.read(f"{PATH}?expose={exposure}")["tokens"] for exposure in ("search", "native")]
        make_tool(server=server, name="more", description="x" * 4000)
        decisions.bring_up_to_date()
        after = [admin.read(f"{PATH}?expose={exposure}")["tokens"] for exposure in ("search", "native")]
        assert after[0] - before[0] < 50
        assert after[1] - before[1] > 1000

    def test_policy_s_own_is_used_where_none_is_asked_for(self, admin: Agent) -> None:
        Policy.objects.filter(slug="default").update(exposure="native", version=2)
        decisions.bring_up_to_date()
        assert admin.read(PATH)["exposure"] == "native"
        assert admin.read(f"{PATH}?expose=search")["exposure"] == "search"

    def test_names_can_be_the_tools_own(self, admin: Agent) -> None:
        assert names_in(admin.read(f"{PATH}?names=own"))[-1] == "tool_0"

    def test_pages_follow_each_other(self, admin: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(gateway_offer, "GATEWAY_PAGE_ENTRIES", 4)
        first = admin.read(f"{PATH}?expose=native")
        second = admin.read(f"{PATH}?expose=native&cursor={first['nextCursor']}")
        assert names_in(first) == ["read_result", *(f"notes__tool_{n}" for n in range(3))]
        assert names_in(second) == [f"notes__tool_{n}" for n in range(3, 6)]
        assert "nextCursor" not in second
        assert first["tokens"] == second["tokens"]


class TestLeftOut:
    def test_is_counted_by_why(self, admin: Agent, server: Server) -> None:
        for _ in range(2):
            make_tool(server=make_server(name=f"file-{_}"))
        make_tool(server=make_server(kind=Kind.BUILTIN))
        decisions.bring_up_to_date()
        answer = admin.read(f"{PATH}?expose=native")
        assert answer["left_out"] == {"snapshot": 2, "builtin": 1}
        assert len(answer["tools"]) == 1 + server.tools.count()

    def test_is_empty_where_nothing_is(self, admin: Agent, server: Server) -> None:
        assert admin.read(PATH)["left_out"] == {}


@pytest.mark.usefixtures("server")
class TestRevisions:
    def test_all_that_are_spoken_are_known(self) -> None:
        assert tuple(Revision) == KNOWN_PROTOCOL_VERSIONS

    @pytest.mark.parametrize("revision", KNOWN_PROTOCOL_VERSIONS)
    @pytest.mark.parametrize("exposure", ["search", "native"])
    def test_result_is_as_the_protocol_has_it(self, admin: Agent, revision: str, exposure: str) -> None:
        answer = admin.read(f"{PATH}?expose={exposure}&revision={revision}")
        told = {name: answer.pop(name) for name in ("tokens", "left_out", "exposure", "names", "revision")}
        assert told["revision"] == revision
        assert serialize_server_result("tools/list", revision, answer) == answer

    def test_newest_says_how_it_may_be_cached_and_who_answers(self, admin: Agent) -> None:
        answer = admin.read(PATH)
        assert (answer["resultType"], answer["ttlMs"], answer["cacheScope"]) == ("complete", 0, "private")
        assert answer["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "toolsearch"

    def test_older_ones_have_none_of_that(self, admin: Agent) -> None:
        answer = admin.read(f"{PATH}?revision=2025-11-25")
        assert not answer.keys() & {"resultType", "ttlMs", "cacheScope", "_meta"}

    def test_empty_values_in_a_schema_are_kept(self, admin: Agent) -> None:
        tool = admin.read(f"{PATH}?revision=2025-11-25")["tools"][-1]
        assert tool["inputSchema"]["properties"]["n"] == {"type": "integer", "default": None}


class TestRefusals:
    @pytest.mark.parametrize(
        "query", ["expose=all", "expose=", "revision=2024-01-01", "revision=", "names=x", "cursor=%25"]
    )
    def test_unknown_value_is_named(self, admin: Agent, query: str) -> None:
        answer = admin.get(f"{PATH}?{query}")
        assert answer.status_code == 422
        assert query.partition("=")[0] in json.dumps(answer.json()["errors"])

    def test_unknown_policy_is_not_found(self, admin: Agent) -> None:
        assert admin.get("/policies/nothing/mcp").status_code == 404

    def test_is_for_admins(self) -> None:
        agent = make_agent(policy=make_policy(slug="own"))
        assert agent.get("/policies/own/mcp").status_code == 403


def test_costs_the_same_queries_for_many(
    admin: Agent, server: Server, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    admin.read(PATH)
    for number in range(20):
        make_tool(server=server, name=f"more_{number}")
    decisions.bring_up_to_date()
    admin.read(f"{PATH}?expose=native")
    with django_assert_num_queries(3):
        admin.read(f"{PATH}?expose=native")
