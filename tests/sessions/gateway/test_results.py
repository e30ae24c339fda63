"""Results as clients get them: every kind of content, the server's own words, addresses, `_meta`."""

import json
from typing import Any

import pytest

from tests.harness.gateway import ERAS, MODERN, MODES, RunningGateway
from tests.harness.upstream_fixture import PIXEL
from tests.sessions.gateway.catalog import ON_THREADS, Catalog, last_call

pytestmark = ON_THREADS


@pytest.mark.parametrize("era", ERAS)
class TestContent:
    def test_of_every_kind_comes_through(self, gateway: RunningGateway, catalog: Catalog, era: str) -> None:
        result = gateway.call(catalog.key, "fixture__media", era=era).result
        assert result["content"] == [
            {"type": "image", "data": PIXEL, "mimeType": "image/png"},
            {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
            {
                "type": "resource",
                "resource": {
                    "uri": "toolsearch://fixture/note%3A%2F%2Fone",
                    "mimeType": "text/plain",
                    "text": "one",
                },
            },
            {"type": "resource_link", "uri": "toolsearch://fixture/note%3A%2F%2Ftwo", "name": "two"},
        ]

    def test_link_of_a_result_can_be_read(self, gateway: RunningGateway, catalog: Catalog, era: str) -> None:
        link = gateway.call(catalog.key, "fixture__media", era=era).result["content"][-1]
        contents = gateway.ask(catalog.key, "resources/read", {"uri": link["uri"]}, era=era).result[
            "contents"
        ]
        assert [(one["uri"], one["text"]) for one in contents] == [(link["uri"], "the note two")]

    def test_structured_comes_with_its_text(
        self, gateway: RunningGateway, catalog: Catalog, era: str
    ) -> None:
        result = gateway.call(catalog.key, "fixture__many", {"count": 2}, era=era).result
        items = [{"id": 0, "name": "item 0"}, {"id": 1, "name": "item 1"}]
        assert result["structuredContent"] == {"items": items}
        assert result["content"] == [{"type": "text", "text": str(items)}]

    def test_meta_comes_back(self, gateway: RunningGateway, catalog: Catalog, era: str) -> None:
        result = gateway.call(catalog.key, "fixture__extra", era=era).result
        assert result["_meta"]["example.org/trace"] == "t1"
        assert result["content"][0]["_meta"] == {"example.org/part": 1}
        assert "fixture" not in str(result["_meta"])

    def test_tool_error_is_one(self, gateway: RunningGateway, catalog: Catalog, era: str) -> None:
        answer = gateway.call(catalog.key, "call_tool", {"name": "fixture__fail"}, era=era)
        assert (answer.said, answer.is_tool_error) == ("it did not work", True)
        assert last_call().outcome == "tool_error"

    def test_of_another_shape_is_a_tool_error(
        self, gateway: RunningGateway, catalog: Catalog, era: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        wrong: list[Any] = [
            {},
            {"content": "text"},
            {"content": ["text"]},
            {"content": [{"type": "text"}]},
            {"content": [{"type": "text", "text": 5}]},
            {"content": [{"type": "image", "data": 5}]},
        ]
        for raw in wrong:

            async def answer(*_: Any, raw: Any = raw, **__: Any) -> Any:
                return dict(raw)

            monkeypatch.setattr("catalog.upstream.leases.LeasePool.request", answer)
            told = gateway.call(catalog.key, "fixture__echo", era=era)
            assert told.is_tool_error, raw
            assert last_call().outcome == "upstream_failed", raw


class TestMeta:
    @pytest.mark.parametrize("era", ERAS)
    def test_of_the_request_reaches_the_server(
        self, gateway: RunningGateway, catalog: Catalog, era: str
    ) -> None:
        meta = {"example.org/thread": "7", "traceparent": "00-1-2-01"}
        result = gateway.call(catalog.key, "fixture__headers", era=era, meta=meta).result
        got = result["structuredContent"]["meta"]
        assert {name: got[name] for name in meta} == meta

    def test_of_the_gateways_own_protocol_does_not(self, gateway: RunningGateway, catalog: Catalog) -> None:
        result = gateway.call(catalog.key, "fixture__headers", agent="spy/7").result
        got = result["structuredContent"]["meta"]
        assert got["io.modelcontextprotocol/clientInfo"]["name"] != "raw"
        assert "progressToken" not in got

    def test_trace_in_a_header_is_passed_on_as_meta(self, gateway: RunningGateway, catalog: Catalog) -> None:
        headers = {"traceparent": "00-h-h-01", "tracestate": "a=1"}
        result = gateway.call(catalog.key, "fixture__headers", headers=headers).result
        got = result["structuredContent"]["meta"]
        assert {name: got[name] for name in headers} == headers

    def test_trace_in_meta_goes_first(self, gateway: RunningGateway, catalog: Catalog) -> None:
        headers = {"traceparent": "00-h-h-01"}
        answer = gateway.call(
            catalog.key, "fixture__headers", headers=headers, meta={"traceparent": "00-m-m-01"}
        )
        assert answer.result["structuredContent"]["meta"]["traceparent"] == "00-m-m-01"


class TestSdkClients:
    @pytest.mark.parametrize("mode", MODES)
    def test_get_what_a_server_gives_whether_or_not_it_is_as_declared(
        self, gateway: RunningGateway, catalog: Catalog, mode: str
    ) -> None:
        with gateway.connect(catalog.key, mode=mode) as agent:
            assert agent.do("call_tool", "fixture__wrong_shape").structured_content == {"number": "many"}
            first = agent.do("call_tool", "call_tool", {"name": "fixture__changes_shape"})
            second = agent.do("call_tool", "call_tool", {"name": "fixture__changes_shape"})
            assert (first.is_error, second.is_error) == (False, False)

    @pytest.mark.parametrize("mode", MODES)
    def test_see_lists_prompts_and_completions(
        self, gateway: RunningGateway, catalog: Catalog, mode: str
    ) -> None:
        with gateway.connect(catalog.key, mode=mode, query="?expose=native") as agent:
            assert len(agent.do("list_tools").tools) > 20
            [prompt] = agent.do("list_prompts").prompts
            got = agent.do("get_prompt", prompt.name, {"name": "Ada"})
            assert got.messages[0].content.text == "Greet Ada"
            [resource] = agent.do("list_resources").resources
            assert agent.do("read_resource", resource.uri).contents[0].text == "the note one"
            [template] = agent.do("list_resource_templates").resource_templates
            filled = template.uri_template.replace("{name}", "three")
            assert agent.do("read_resource", filled).contents[0].text == "the note three"


def test_own_tools_say_the_same_in_text_and_structured_content(
    gateway: RunningGateway, catalog: Catalog
) -> None:

    for tool, arguments in (
        ("search_tools", {"query": "echo"}),
        ("describe_tools", {"names": ["fixture__echo", "nothing"]}),
    ):
        result = gateway.call(catalog.key, tool, arguments, era=MODERN).result
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
