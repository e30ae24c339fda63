"""What becomes of a server's result before a client gets it: addresses, size, shape."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_types import CallToolResult
from pydantic import ValidationError

from catalog.domain.limits import GATEWAY_CONTENT_BYTES, KEPT_RESULT_BYTES
from catalog.domain.sizes import CHARS_PER_TOKEN, compact_json, count_message_bytes
from sessions.domain.resource_addresses import write_address
from sessions.gateway.answers import JsonObject

_SERVER_INFO = "io.modelcontextprotocol/serverInfo"
_LAST_LINE = "[Cut here: {left} more characters. Read on with read_result, handle {handle}, offset {offset}.]"
_LOST_LINE = "[Cut here: {left} more characters, which are not kept.]"
_LEFT_OUT_LINE = "[Left out: {kind} of {size:,} bytes, larger than a message may be.]"
_ALL_LEFT_OUT_LINE = "[Left out: {number} parts, which are more than a message may hold.]"
_META_BYTES = 100_000


class WrongShape(Exception):
    """A server's answer is no result of a call as MCP has them."""


@dataclass(frozen=True, slots=True)
class CutResult:
    """A result that is too long: of its `text` the first `shown` characters are sent, the rest is kept.

    `lost` characters past the text are not.
    """

    content: list[JsonObject]
    text: str
    shown: int
    lost: int
    is_error: bool
    meta: JsonObject | None

    @property
    def is_more(self) -> bool:
        """Whether there is text to read on."""
        return self.shown < len(self.text)

    def finish(self, handle: str | None) -> JsonObject:
        """The result with its last line; without a handle what is cut is lost."""
        text = _end_text(self.text, 0, self.shown, handle, lost=self.lost)
        content = [*self.content, {"type": "text", "text": text}] if text else self.content
        result: JsonObject = {"content": content, "isError": self.is_error, "resultType": "complete"}
        return {**result, "_meta": self.meta} if self.meta else result


def read_on(text: str, offset: int, *, handle: str, max_tokens: int) -> str:
    """The text from there, as much as one result may have, and a last line where there is more."""
    rest = text[offset:]
    shown = _fit(rest, max_tokens * CHARS_PER_TOKEN or len(rest), GATEWAY_CONTENT_BYTES)
    return _end_text(text, offset, shown, handle)


def _end_text(text: str, start: int, shown: int, handle: str | None, *, lost: int = 0) -> str:
    end = start + shown
    left = len(text) - end
    part = text[start:end]
    if not left and not lost:
        return part
    if not handle or not left:
        return f"{part}\n{_LOST_LINE.format(left=left + lost)}"
    line = _LAST_LINE.format(left=left, handle=handle, offset=end)
    return f"{part}\n{line}"


def is_unfinished(result: Mapping[str, Any]) -> bool:
    """Whether the server asks the client for something first."""
    return result.get("resultType") == "input_required"


def without_server_info(result: JsonObject) -> JsonObject:
    """Without what the server says of itself: this is the gateway's answer."""
    meta = result.get("_meta")
    if not isinstance(meta, dict):
        return {name: value for name, value in result.items() if name != "_meta"}
    return {**result, "_meta": {name: value for name, value in meta.items() if name != _SERVER_INFO}}


def read_result(result: JsonObject, server: str) -> JsonObject:
    """The result as it may be passed on. Raises WrongShape."""
    result = {**without_server_info(result), "resultType": "complete"}
    content = result.get("content")
    if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
        raise WrongShape
    result["content"] = [move_links(block, server) for block in content]
    if not _is_plain(result):
        _require_shape(result)
    return result


def limit_result(result: JsonObject, *, max_tokens: int) -> JsonObject | CutResult:
    """The same result, or what is left of one with too much text or too many bytes. 0 tokens is no limit."""
    blocks = result["content"]
    texts = [text for block in blocks if (text := _text_of(block)) is not None]
    structured = result.get("structuredContent")
    written = "" if structured is None else compact_json(structured)
    most_chars = max_tokens * CHARS_PER_TOKEN
    is_long = bool(max_tokens) and sum(map(len, texts)) + len(written) > most_chars
    if not is_long and count_message_bytes(result) <= GATEWAY_CONTENT_BYTES:
        return result
    meta = _bound_meta(result)
    others, left_bytes = _keep_others(blocks, GATEWAY_CONTENT_BYTES - count_message_bytes(meta))
    whole = "\n".join(texts)
    shown = _fit(whole, most_chars or len(whole), left_bytes)
    if written and shown == len(whole):  # the text is whole: what can be read on is the structured content
        whole = f"{whole}\n{written}" if whole else written
        shown = shown or _fit(whole, most_chars or len(whole), left_bytes)
    text, lost = _bound_kept(whole)
    is_error = result.get("isError") is True
    return CutResult(others, text, min(shown, len(text)), lost, is_error, meta)


def _text_of(block: JsonObject) -> str | None:
    """What a model reads of a block; None for an image and the like."""
    holder = block["resource"] if block.get("type") == "resource" else block
    text = holder.get("text") if block.get("type") in {"text", "resource"} else None
    return text if isinstance(text, str) else None


def _bound_kept(whole: str) -> tuple[str, int]:
    """As much as may be kept, which says at its end what is not, and how many characters those are."""
    encoded = whole.encode(errors="replace")
    if len(encoded) <= KEPT_RESULT_BYTES:
        return encoded.decode(), 0
    text = encoded[: KEPT_RESULT_BYTES - len(_LOST_LINE) - 20].decode(errors="ignore")
    lost = len(whole) - len(text)
    return f"{text}\n{_LOST_LINE.format(left=lost)}", lost


def _bound_meta(result: Mapping[str, Any]) -> JsonObject | None:
    """`_meta` as the server gave it, unless it takes much of a message."""
    meta: JsonObject | None = result.get("_meta")
    return meta if meta and count_message_bytes(meta) <= _META_BYTES else None


def _keep_others(blocks: Sequence[JsonObject], most_bytes: int) -> tuple[list[JsonObject], int]:
    """Images and the like as far as a message holds them, with a line for what it does not hold; and how
    many bytes are left.
    """
    others = [block for block in blocks if _text_of(block) is None]
    kept: list[JsonObject] = []
    left = most_bytes
    for place, block in enumerate(others):
        shown = _shorten(block, left)
        left -= count_message_bytes(shown) + 1
        if left < 0:
            kept.append(_write_note(_ALL_LEFT_OUT_LINE, number=len(others) - place))
            return kept, 0
        kept.append(shown)
    return kept, left


def _shorten(block: JsonObject, most_bytes: int) -> JsonObject:
    size = count_message_bytes(block)
    if size < most_bytes:
        return block
    return _write_note(_LEFT_OUT_LINE, kind=str(block.get("type"))[:40], size=size)


def _write_note(line: str, **values: object) -> JsonObject:
    return {"type": "text", "text": line.format(**values)}


def _fit(text: str, most_chars: int, most_bytes: int) -> int:
    """How many characters fit, as JSON: a character takes at most six bytes there."""
    shown = min(len(text), most_chars)
    while shown and count_message_bytes(text[:shown]) > max(most_bytes, 0):
        shown = shown * 3 // 4
    return shown


def move_links(block: JsonObject, server: str) -> JsonObject:
    """Addresses of a server's resources become addresses here."""
    if block.get("type") == "resource_link" and isinstance(block.get("uri"), str):
        return {**block, "uri": write_address(server, block["uri"])}
    resource = block.get("resource")
    if (
        block.get("type") == "resource"
        and isinstance(resource, dict)
        and isinstance(resource.get("uri"), str)
    ):
        return {**block, "resource": {**resource, "uri": write_address(server, resource["uri"])}}
    return block


def _is_plain(result: Mapping[str, Any]) -> bool:
    """Most results are texts alone, which need no closer look."""
    has_texts = all(
        block.keys() == {"type", "text"} and block["type"] == "text" and isinstance(block["text"], str)
        for block in result["content"]
    )
    structured = result.get("structuredContent")
    return (
        has_texts
        and isinstance(result.get("isError", False), bool)
        and (structured is None or isinstance(structured, dict))
    )


def _require_shape(result: JsonObject) -> None:
    try:
        CallToolResult.model_validate(result, by_name=False)
    except ValidationError:
        raise WrongShape from None
