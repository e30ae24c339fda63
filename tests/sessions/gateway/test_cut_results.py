"""Results that are too long: cut, kept for their key, read on to their very end."""

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError
from django.utils import timezone

from catalog.domain.limits import GATEWAY_MESSAGE_BYTES, KEPT_RESULT_BYTES
from sessions.gateway.results import CutResult, limit_result, read_on
from sessions.models import KeptResult
from sessions.services import kept_results
from tests.harness.gateway import ERAS, RunningGateway
from tests.sessions.gateway.catalog import ON_THREADS, Catalog, define, follow, give_tools, last_call

LAST_LINE = re.compile(
    r"\n\[Cut here: (?P<left>\d+) more characters\. Read on with read_result, "
    r"handle (?P<handle>[A-Za-z0-9_-]{12,}), offset (?P<offset>\d+)\.\]\Z"
)
TEXTS = {
    "ASCII": "0123456789" * 2_000,
    "Chinese": "漢字仮名" * 5_000,
    "emoji": "🦊🐻" * 10_000,
    "escapes": '\\"\n\x01' * 5_000,
    "surrogate": "\ud800" * 20_000,
}


def text_result(*texts: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text} for text in texts], "resultType": "complete", **more}


def image(size: int) -> dict[str, Any]:
    return {"type": "image", "data": "A" * size, "mimeType": "image/png"}


def cut(result: dict[str, Any], max_tokens: int) -> dict[str, Any]:
    limited = limit_result(result, max_tokens=max_tokens)
    assert isinstance(limited, CutResult)
    return limited.finish("h" * 24)


def last_text(result: dict[str, Any]) -> str:
    return str(result["content"][-1]["text"])


def read_to_the_end(gateway: RunningGateway, key: str, text: str, era: str) -> str:
    """The whole of a text that was cut."""
    parts = []
    while line := LAST_LINE.search(text):
        parts.append(text[: line.start()])
        arguments = {"handle": line["handle"], "offset": int(line["offset"])}
        text = gateway.call(key, "read_result", arguments, era=era).said
    return "".join([*parts, text])


class TestLimit:
    def test_result_that_fits_stays_as_it_is(self) -> None:
        result = text_result("x" * 40, structuredContent={"a": 1}, _meta={"b": 2})
        assert limit_result(result, max_tokens=12) is result

    def test_counts_text_and_structured_content_together(self) -> None:
        structured = {"a": "y" * 32}  # 40 characters
        assert limit_result(text_result("x" * 40, structuredContent=structured), max_tokens=20) == (
            text_result("x" * 40, structuredContent=structured)
        )
        assert isinstance(
            limit_result(text_result("x" * 41, structuredContent=structured), max_tokens=20), CutResult
        )

    @pytest.mark.parametrize("text", TEXTS.values(), ids=list(TEXTS))
    def test_text_is_cut_between_two_characters(self, text: str) -> None:
        result = cut(text_result(text), 100)
        line = LAST_LINE.search(last_text(result))
        assert line
        assert last_text(result)[: line.start()] == text.encode(errors="replace").decode()[:400]
        assert int(line["left"]) == len(text) - 400
        assert int(line["offset"]) == 400

    def test_several_texts_are_one(self) -> None:
        result = cut(text_result("a" * 300, "b" * 300), 100)
        assert last_text(result).startswith("a" * 300 + "\n" + "b" * 99 + "\n[Cut here")

    def test_structured_content_is_left_out_where_the_text_is_cut(self) -> None:
        result = cut(text_result("x" * 1_000, structuredContent={"a": 1}), 100)
        assert "structuredContent" not in result

    def test_structured_content_alone_becomes_text(self) -> None:
        structured = {"items": list(range(1_000))}
        result = cut({"content": [], "structuredContent": structured}, 100)
        written = json.dumps(structured, separators=(",", ":"))
        assert last_text(result).startswith(written[:400] + "\n[Cut here")

    def test_structured_content_that_does_not_fit_beside_its_text_can_be_read_on(self) -> None:
        structured = {"items": list(range(1_000))}
        limited = limit_result(text_result("A summary.", structuredContent=structured), max_tokens=100)
        assert isinstance(limited, CutResult)
        told = last_text(limited.finish("h" * 24))
        line = LAST_LINE.search(told)
        assert line
        assert told[: line.start()] == "A summary."
        assert json.loads(read_on(limited.text, int(line["offset"]), handle="h", max_tokens=0)) == structured

    def test_errors_stay_errors_and_meta_stays(self) -> None:
        result = cut(text_result("x" * 1_000, isError=True, _meta={"a": 1}), 100)
        assert (result["isError"], result["_meta"]) == (True, {"a": 1})

    def test_images_stay_beside_text_that_is_cut(self) -> None:
        result = cut({"content": [image(5_000), *text_result("x" * 1_000)["content"]]}, 100)
        assert [block["type"] for block in result["content"]] == ["image", "text"]

    def test_text_of_embedded_resources_counts_and_is_cut_too(self) -> None:
        resource = {"type": "resource", "resource": {"uri": "note://1", "text": "y" * 1_000}}
        limited = limit_result({"content": [*text_result("x")["content"], resource]}, max_tokens=100)
        assert isinstance(limited, CutResult)
        assert limited.text == "x\n" + "y" * 1_000
        assert [block["type"] for block in limited.finish("h" * 24)["content"]] == ["text"]


class TestMessage:
    """Below 1 MiB, whatever the policy says."""

    LARGE: dict[str, dict[str, Any]] = {
        **{name: text_result(text * 400) for name, text in TEXTS.items()},
        "image": {"content": [image(2_000_000)]},
        "images": {"content": [image(400_000)] * 5},
        "many images": {"content": [image(10)] * 200_000},
        "image beside text": {"content": [image(900_000), *text_result("x" * 900_000)["content"]]},
        "structured": {"content": [], "structuredContent": {"a": "x" * 2_000_000}},
        "meta": text_result("x", _meta={"a": "x" * 2_000_000}),
        "odd type": {"content": [{"type": "x" * 2_000_000}]},
    }

    @pytest.mark.parametrize("result", LARGE.values(), ids=list(LARGE))
    @pytest.mark.parametrize("max_tokens", [0, 20_000, 10_000_000])
    def test_is_never_larger(self, result: dict[str, Any], max_tokens: int) -> None:
        finished = cut(result, max_tokens)
        message = {"jsonrpc": "2.0", "id": 1, "result": finished}
        assert len(json.dumps(message, separators=(",", ":"))) < GATEWAY_MESSAGE_BYTES

    def test_says_what_is_left_out(self) -> None:
        result = cut({"content": [image(2_000_000)]}, 0)
        assert last_text(result).startswith("[Left out: image of 2,000,0")

    def test_of_many_images_says_how_many_are_left_out(self) -> None:
        result = cut(self.LARGE["many images"], 0)
        kept = sum(block["type"] == "image" for block in result["content"])
        told = [block["text"] for block in result["content"] if block["type"] == "text"]
        assert f"{200_000 - kept - len(told) + 1} parts" in told[-1]

    def test_that_is_read_on_is_not_larger_either(self) -> None:
        for text in TEXTS.values():
            told = read_on(text.encode(errors="replace").decode() * 400, 0, handle="h" * 24, max_tokens=0)
            assert len(json.dumps(text_result(told))) < GATEWAY_MESSAGE_BYTES


class TestKept:
    def test_what_is_past_the_kept_is_told_at_the_very_end(self) -> None:
        limited = limit_result(text_result("é" * KEPT_RESULT_BYTES), max_tokens=100)
        assert isinstance(limited, CutResult)
        assert len(limited.text.encode()) <= KEPT_RESULT_BYTES
        end = read_on(limited.text, len(limited.text) - 100, handle="h", max_tokens=100)
        assert re.search(r"\[Cut here: \d+ more characters, which are not kept\.\]\Z", end)


@pytest.mark.parametrize("era", ERAS)
class TestReadingOn:
    pytestmark = ON_THREADS

    @pytest.mark.parametrize("max_tokens", [1_000, 0])
    def test_gives_the_whole_text(
        self, gateway: RunningGateway, catalog: Catalog, era: str, max_tokens: int
    ) -> None:
        catalog.change(max_result_tokens=max_tokens)
        size = 20_001 if max_tokens else 2_100_000
        answer = gateway.call(catalog.key, "fixture__big", {"size": size}, era=era)
        assert LAST_LINE.search(answer.said)
        assert len(answer.text) < GATEWAY_MESSAGE_BYTES
        assert read_to_the_end(gateway, catalog.key, answer.said, era) == "x" * size
        call = last_call()
        assert (call.is_cut, call.outcome) == (True, "ok")
        assert call.result_bytes > size

    def test_of_structured_content_gives_its_text(
        self, gateway: RunningGateway, catalog: Catalog, era: str
    ) -> None:
        catalog.change(max_result_tokens=1_000)
        answer = gateway.call(catalog.key, "fixture__many", {"count": 1_000}, era=era)
        assert "structuredContent" not in answer.result
        whole = read_to_the_end(gateway, catalog.key, answer.said, era)
        assert whole == str([{"id": number, "name": f"item {number}"} for number in range(1_000)])

    def test_of_what_expired_is_refused(self, gateway: RunningGateway, catalog: Catalog, era: str) -> None:
        catalog.change(max_result_tokens=100)
        answer = gateway.call(catalog.key, "fixture__big", {"size": 5_000}, era=era)
        line = LAST_LINE.search(answer.said)
        assert line
        KeptResult.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
        again = gateway.call(catalog.key, "read_result", {"handle": line["handle"]}, era=era)
        assert again.is_tool_error
        assert "15 minutes" in again.said

    def test_past_the_end_is_refused(self, gateway: RunningGateway, catalog: Catalog, era: str) -> None:
        catalog.change(max_result_tokens=100)
        answer = gateway.call(catalog.key, "fixture__big", {"size": 5_000}, era=era)
        line = LAST_LINE.search(answer.said)
        assert line
        for offset in (5_001, -1, 10**30, "0", 1.5, True):
            arguments = {"handle": line["handle"], "offset": offset}
            again = gateway.call(catalog.key, "read_result", arguments, era=era)
            assert again.is_tool_error, offset
            assert "offset" in again.said
        whole = gateway.call(catalog.key, "read_result", {"handle": line["handle"], "offset": None}, era=era)
        assert whole.said.startswith("xxx")
        arguments = {"handle": line["handle"], "offset": 5_000}
        assert gateway.call(catalog.key, "read_result", arguments, era=era).said == ""

    def test_of_odd_handles_is_refused(self, gateway: RunningGateway, catalog: Catalog, era: str) -> None:
        handles: list[Any] = ["", "x", "\0", "é" * 24, "x" * 10_000, "../../etc/passwd", None, 5, {}]
        for handle in handles:
            answer = gateway.call(catalog.key, "read_result", {"handle": handle}, era=era)
            assert answer.is_tool_error, handle
            assert last_call().outcome == "refused"

    def test_is_not_possible_where_the_database_left_meanwhile_but_the_result_is_given(
        self, gateway: RunningGateway, catalog: Catalog, era: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The call was carried out: a client that is told of an error would repeat it."""

        def fail(**_: object) -> None:
            raise OperationalError

        catalog.change(max_result_tokens=100)
        monkeypatch.setattr(kept_results, "keep_result", fail)
        answer = gateway.call(catalog.key, "fixture__big", {"size": 5_000}, era=era)
        assert not answer.is_tool_error
        assert answer.said.endswith("\n[Cut here: 4600 more characters, which are not kept.]")
        assert last_call().outcome == "ok"


@ON_THREADS
def test_no_output_schema_is_listed_where_there_is_a_limit(gateway: RunningGateway, catalog: Catalog) -> None:

    give_tools(catalog.server, [define("many", output_schema={"type": "object"})])
    follow()
    for max_tokens, is_listed in ((20_000, False), (0, True)):
        catalog.change(max_result_tokens=max_tokens)
        tools = gateway.ask(catalog.key, "tools/list", query="?expose=native").result["tools"]
        assert ["outputSchema" in tool for tool in tools if tool["name"] == "fixture__many"] == [is_listed]
