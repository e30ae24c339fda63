"""Resources, prompts and completions: lists as the last refresh stored them, the rest from the server."""

from collections.abc import Mapping, Sequence
from typing import Any

from mcp import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from catalog.domain.connection import SIGN_IN_CODES, UpstreamFailure
from catalog.domain.limits import GATEWAY_CONTENT_BYTES, GATEWAY_MESSAGE_BYTES, GATEWAY_PAGE_ENTRIES
from catalog.domain.sizes import count_message_bytes
from catalog.domain.upstream_calls import CallTimedOut, Upstream, UpstreamError
from catalog.sealing import SealBroken
from catalog.services.call_targets import find_upstream
from sessions.domain.resource_addresses import encode_odd_characters, read_address, write_address
from sessions.gateway.answers import JsonObject, pass_error
from sessions.gateway.calling import NoteRefused, read_input, read_meta
from sessions.gateway.clients import Context, caller_of, read_client
from sessions.gateway.open_calls import OpenCalls
from sessions.gateway.results import is_unfinished, move_links, without_server_info
from sessions.gateway.signed_in import SignedInRequests
from sessions.gateway.threads import Threads
from sessions.offers.gateway_features import Features, features_of

RESOURCES, TEMPLATES, PROMPTS = "resources", "resourceTemplates", "prompts"
_UNREACHABLE = "The server could not be reached."
_NEEDS_SIGN_IN = "The server needs a sign-in: an admin has to connect it."


class Relay:
    def __init__(
        self,
        requests: SignedInRequests,
        threads: Threads,
        open_calls: OpenCalls,
        *,
        note_refused: NoteRefused,
    ) -> None:
        self._requests = requests
        self._threads = threads
        self._open = open_calls
        self._note_refused = note_refused

    async def list_resources(self, context: Context, params: Any) -> JsonObject:
        features = await self._features(context)
        return _page(RESOURCES, features.resources, _cursor(params))

    async def list_templates(self, context: Context, params: Any) -> JsonObject:
        features = await self._features(context)
        return _page(TEMPLATES, features.templates, _cursor(params))

    async def list_prompts(self, context: Context, params: Any) -> JsonObject:
        features = await self._features(context)
        return _page(PROMPTS, features.prompts, _cursor(params))

    async def read_resource(self, context: Context, params: Any) -> JsonObject:
        address = str(params.uri)
        server_id, server, uri = _find_resource(await self._features(context), address)
        result = await self._ask(context, server_id, "resources/read", {"uri": uri})
        contents = result.get("contents")
        if isinstance(contents, list) and address != uri:
            result["contents"] = [_move(one, server) for one in contents]
        return result

    async def get_prompt(self, context: Context, params: Any) -> JsonObject:
        features = await self._features(context)
        source = features.prompt_sources.get(params.name)
        if source is None:
            raise MCPError(code=INVALID_PARAMS, message=f"Unknown prompt: {params.name[:200]}")
        given = {"name": source.name, "arguments": dict(params.arguments or {})}
        result = await self._ask(context, source.server_id, "prompts/get", given)
        servers = {server_id: name for name, server_id in features.servers.items()}
        messages = result.get("messages")
        if isinstance(messages, list):
            result["messages"] = [_move_links(one, servers[source.server_id]) for one in messages]
        return result

    async def complete(self, context: Context, params: Any) -> JsonObject:
        """Where the server completes nothing there is nothing to complete."""
        features = await self._features(context)
        given = dict(context.params or {})
        server_id, reference = _find_reference(features, given["ref"])
        if server_id not in features.completing:
            return {"completion": {"values": []}, "resultType": "complete"}
        wanted = {"ref": reference, "argument": given["argument"]}
        if "context" in given:
            wanted["context"] = given["context"]
        return await self._ask(context, server_id, "completion/complete", wanted)

    async def _features(self, context: Context) -> Features:
        return await self._threads.run(features_of, caller_of(context).offer)

    async def _ask(self, context: Context, server_id: int, method: str, params: JsonObject) -> JsonObject:
        caller, client = caller_of(context), read_client(context)
        upstream = await self._threads.run(_find_upstream, server_id)
        params |= read_input(context)
        if meta := read_meta(context):
            params["_meta"] = meta
        try:
            with self._open.counted(caller.key_id):
                result = await self._requests.request(
                    upstream,
                    client.holder(caller.key_id),
                    method,
                    params,
                    timeout_seconds=caller.policy.call_timeout_seconds,
                )
        except UpstreamError as error:
            raise pass_error(error) from None
        except CallTimedOut as error:
            raise MCPError(code=INTERNAL_ERROR, message=str(error)) from None
        except UpstreamFailure as failure:
            message = _NEEDS_SIGN_IN if failure.code in SIGN_IN_CODES else _UNREACHABLE
            raise MCPError(code=INTERNAL_ERROR, message=message) from None
        if is_unfinished(result) and not client.is_modern:
            self._note_refused(server_id, "input_required")
            message = "The server asks for more input, which this client's revision cannot give."
            raise MCPError(code=INVALID_PARAMS, message=message)
        return _bounded(result)


def _find_upstream(server_id: int) -> Upstream:
    try:
        upstream = find_upstream(server_id)
    except SealBroken:
        raise MCPError(code=INTERNAL_ERROR, message=_UNREACHABLE) from None
    if upstream is None:
        raise MCPError(code=INVALID_PARAMS, message="Unknown server")
    return upstream


def _find_resource(features: Features, address: str) -> tuple[int, str, str]:
    found = read_address(address) or features.find_own(address)
    server_id = features.servers.get(found[0]) if found else None
    if found is None or server_id is None:
        raise MCPError(code=INVALID_PARAMS, message="Unknown resource", data={"uri": address[:2000]})
    server, uri = found
    is_listed = any(one["uri"] == address for one in features.resources)
    return server_id, server, uri if is_listed or address == uri else encode_odd_characters(uri)


def _find_reference(features: Features, reference: Mapping[str, Any]) -> tuple[int, JsonObject]:
    if reference.get("type") == "ref/prompt":
        source = features.prompt_sources.get(str(reference.get("name")))
        if source is None:
            raise MCPError(code=INVALID_PARAMS, message="Unknown prompt")
        return source.server_id, {**reference, "name": source.name}
    server_id, _, uri = _find_resource(features, str(reference.get("uri")))
    return server_id, {**reference, "uri": uri}


def _page(name: str, entries: Sequence[JsonObject], cursor: str | None) -> JsonObject:
    start = _read_cursor(cursor, len(entries)) if cursor else 0
    end = start + _count_fitting(entries[start : start + GATEWAY_PAGE_ENTRIES])
    page: JsonObject = {name: list(entries[start:end]), "resultType": "complete"}
    return {**page, "nextCursor": str(end)} if end < len(entries) else page


def _count_fitting(entries: Sequence[JsonObject]) -> int:
    """How many of them a message holds: at least one, or the list would not go on."""
    left_bytes = GATEWAY_CONTENT_BYTES
    for place, entry in enumerate(entries):
        left_bytes -= count_message_bytes(entry) + 1
        if left_bytes < 0:
            return max(place, 1)
    return len(entries)


def _read_cursor(cursor: str, count: int) -> int:
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 10 and int(cursor) <= count):
        raise MCPError(code=INVALID_PARAMS, message="The cursor is not one that a page of this list gave")
    return int(cursor)


def _cursor(params: Any) -> str | None:
    cursor: str | None = params.cursor if params is not None else None
    return cursor


def _move(content: Any, server: str) -> Any:
    if isinstance(content, dict) and isinstance(content.get("uri"), str):
        return {**content, "uri": write_address(server, content["uri"])}
    return content


def _move_links(message: Any, server: str) -> Any:
    content = message.get("content") if isinstance(message, dict) else None
    return {**message, "content": move_links(content, server)} if isinstance(content, dict) else message


def _bounded(result: JsonObject) -> JsonObject:
    if count_message_bytes(result) > GATEWAY_MESSAGE_BYTES:
        raise MCPError(code=INTERNAL_ERROR, message="The answer is larger than a message may be.")
    return {"resultType": "complete", **without_server_info(result)}
