"""Two keys with different policies at once: nothing of one reaches the other, by any method."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from catalog.models import Policy
from tests.harness.gateway import ERAS, RunningGateway, wait_until
from tests.harness.rows import make_policy
from tests.harness.upstream_fixture import HttpFixture
from tests.sessions.gateway.catalog import (
    ON_THREADS,
    Catalog,
    add_server,
    change_policy,
    define,
    follow,
    give_tools,
    make_key,
)

pytestmark = ON_THREADS

VIEWS = ("", "?expose=native", "?names=own", "?expose=native&names=own")


@dataclass
class Side:
    """A key that sees one server. `word` is in every text and name of it, and in none of the other's."""

    word: str
    key: str
    policy: Policy

    def is_in(self, value: object) -> bool:
        return self.word in json.dumps(value).lower()


@pytest.fixture
def sides(catalog: Catalog, upstream: HttpFixture) -> tuple[Side, Side]:
    return _add("walnut", upstream), _add("quartz", upstream)


def _add(word: str, upstream: HttpFixture) -> Side:
    server = add_server(word, upstream.connection())
    definitions = [
        define("echo", description=f"Say it as {word} does."),
        define("count", description=f"Count {word}s.", schema={"type": "object", "title": word}),
        define("big", description=f"Much of {word}."),
        define(f"{word}_only", description=f"Nobody else has this {word}."),
    ]
    give_tools(server, definitions)
    features = server.features
    features.resources = [{"uri": f"note://{word}", "name": word}]
    features.templates = [{"uriTemplate": f"note://{word}-{{name}}", "name": f"{word}s"}]
    features.prompts = [{"name": f"greet_{word}", "description": word}]
    features.save()
    policy = make_policy(
        slug=word, visible=[f"{word}/*"], max_result_tokens=100, never_defer=[f"{word}/echo"]
    )
    follow()
    return Side(word, make_key(policy)[1], policy)


def ours(sides: tuple[Side, Side]) -> list[tuple[Side, Side]]:
    return [sides, sides[::-1]]


@pytest.mark.parametrize("era", ERAS)
class TestNothingOfTheOther:
    def test_is_listed(self, gateway: RunningGateway, sides: tuple[Side, Side], era: str) -> None:
        methods = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")
        for mine, other in ours(sides):
            for query in VIEWS:
                for method in methods:
                    result = gateway.ask(mine.key, method, era=era, query=query).result
                    assert not other.is_in(result), (method, query)
                    assert mine.is_in(result), (method, query)
                    assert "nextCursor" not in result

    def test_is_listed_with_the_others_cursor(
        self,
        gateway: RunningGateway,
        sides: tuple[Side, Side],
        era: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr("sessions.offers.gateway_offer.GATEWAY_PAGE_ENTRIES", 2)
        for mine, other in ours(sides):
            query = "?expose=native"
            cursor = gateway.ask(mine.key, "tools/list", era=era, query=query).result["nextCursor"]
            page = gateway.ask(other.key, "tools/list", {"cursor": cursor}, era=era, query=query).result
            assert not mine.is_in(page)

    def test_is_found(self, gateway: RunningGateway, sides: tuple[Side, Side], era: str) -> None:
        for mine, other in ours(sides):
            for arguments in (
                {"query": other.word},
                {"query": f"+{other.word}"},
                {"query": f"select:{other.word}__echo,mcp__{other.word}__count"},
                {"pattern": other.word},
                {"pattern": ".*"},
                {"query": ""},
                {"query": "say count much"},
            ):
                result = gateway.call(mine.key, "search_tools", arguments, era=era).result
                told = {**result["structuredContent"], "missing": [], "unmatched_terms": [], "message": ""}
                assert not other.is_in(told), arguments
        assert sides[0].is_in(gateway.call(sides[0].key, "search_tools", {"query": "say"}, era=era).result)

    def test_is_described(self, gateway: RunningGateway, sides: tuple[Side, Side], era: str) -> None:
        for mine, other in ours(sides):
            names = [f"{other.word}__echo", f"mcp__{other.word}__echo", "echo", f"{other.word}_only"]
            answer = gateway.call(mine.key, "describe_tools", {"names": names}, era=era)
            described = answer.result["structuredContent"]
            assert described["tools"] == []
            assert described["missing"] == names

    def test_is_called_by_any_name(self, gateway: RunningGateway, sides: tuple[Side, Side], era: str) -> None:
        for mine, other in ours(sides):
            names = [
                f"{other.word}__echo",
                f"mcp__{other.word}__echo",
                f"{other.word}_only",
                f"{other.word}/echo",
                "fixture__echo",
            ]
            for query in VIEWS:
                for name in names:
                    for tool, arguments in (
                        (name, {}),
                        ("call_tool", {"name": name}),
                        ("call_read_tool", {"name": name}),
                    ):
                        error = gateway.call(mine.key, tool, arguments, era=era, query=query).error
                        assert (error["code"], error["message"]) == (-32602, f"Unknown tool: {name}")

    def test_is_read_on(self, gateway: RunningGateway, sides: tuple[Side, Side], era: str) -> None:
        for mine, other in ours(sides):
            cut = gateway.call(mine.key, f"{mine.word}__big", {"size": 5_000}, era=era)
            handle = cut.said.rpartition("handle ")[2].partition(",")[0]
            assert len(handle) >= 12
            own = gateway.call(mine.key, "read_result", {"handle": handle}, era=era)
            others = gateway.call(other.key, "read_result", {"handle": handle}, era=era)
            unknown = gateway.call(other.key, "read_result", {"handle": "A" * 24}, era=era)
            assert own.said.startswith("xxx")
            assert others.is_tool_error
            assert others.said == unknown.said

    def test_is_read(self, gateway: RunningGateway, sides: tuple[Side, Side], era: str) -> None:
        for mine, other in ours(sides):
            for address in (
                f"toolsearch://{other.word}/note%3A%2F%2F{other.word}",
                f"toolsearch://{other.word}/note%3A%2F%2Fone",
                "toolsearch://fixture/note%3A%2F%2Fone",
                f"note://{other.word}",
                f"toolsearch://{other.word}",
                f"toolsearch://{mine.word}%2F..%2F{other.word}/note%3A%2F%2Fone",
            ):
                answer = gateway.ask(mine.key, "resources/read", {"uri": address}, era=era)
                assert answer.error["code"] == -32602, address
            uri = f"toolsearch://{mine.word}/note%3A%2F%2F{mine.word}"
            contents = gateway.ask(mine.key, "resources/read", {"uri": uri}, era=era).result["contents"]
            assert [(one["uri"], one["text"]) for one in contents] == [(uri, f"the note {mine.word}")]

    def test_prompts_are_got(self, gateway: RunningGateway, sides: tuple[Side, Side], era: str) -> None:
        for mine, other in ours(sides):
            names = [f"{other.word}__greet_{other.word}", f"greet_{other.word}", "fixture__greet"]
            for name in names:
                answer = gateway.ask(mine.key, "prompts/get", {"name": name}, era=era)
                assert answer.error["code"] == -32602, name
                assert answer.error["message"] == f"Unknown prompt: {name}"

    def test_is_completed(self, gateway: RunningGateway, sides: tuple[Side, Side], era: str) -> None:
        argument = {"name": "name", "value": "A"}
        for mine, other in ours(sides):
            for ref in (
                {"type": "ref/prompt", "name": f"{other.word}__greet_{other.word}"},
                {"type": "ref/resource", "uri": f"toolsearch://{other.word}/note%3A%2F%2F{{name}}"},
            ):
                params = {"ref": ref, "argument": argument}
                error = gateway.ask(mine.key, "completion/complete", params, era=era).error
                assert error["code"] == -32602
            ref = {"type": "ref/prompt", "name": f"{mine.word}__greet_{mine.word}"}
            params = {"ref": ref, "argument": argument}
            result = gateway.ask(mine.key, "completion/complete", params, era=era).result
            assert result["completion"]["values"] == ["Ada", "Alan"]

    def test_methods_that_are_not_served_are_unknown(
        self, gateway: RunningGateway, sides: tuple[Side, Side], era: str
    ) -> None:
        for method in ("resources/subscribe", "logging/setLevel", "tasks/list", "sampling/createMessage"):
            params: dict[str, Any] = {"uri": "note://one", "level": "info"}
            assert gateway.ask(sides[0].key, method, params, era=era).error["code"] in {-32601, -32602}


class TestListening:
    def test_hears_of_the_own_policy_alone(self, gateway: RunningGateway, sides: tuple[Side, Side]) -> None:
        mine, other = sides
        params = {"notifications": {"toolsListChanged": True}}
        with (
            gateway.listen(mine.key, params) as heard,
            gateway.listen(other.key, params) as heard_by_other,
        ):
            change_policy(mine.policy, visible=[f"{mine.word}/echo"])
            wait_until(lambda: "notifications/tools/list_changed" in heard.methods, seconds=3)
            assert "notifications/tools/list_changed" not in heard_by_other.methods
            assert not mine.is_in(heard_by_other.messages)


def test_old_clients_cannot_listen(gateway: RunningGateway, catalog: Catalog) -> None:
    params = {"notifications": {"toolsListChanged": True}}
    assert gateway.ask(catalog.key, "subscriptions/listen", params, era=ERAS[1]).error["code"] == -32601
