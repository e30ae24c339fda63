"""A search by a client of the newest revision, answered in one job with the check of its key.

Agents wait for searches most, and the MCP library's dispatch takes longer than the search. What is not a
sound message of this kind is left to the library, which says what is wrong with it.
"""

import json
from typing import Any

from mcp.server.streamable_http import check_accept_headers
from mcp.shared.inbound import (
    InboundModernRoute,
    classify_inbound_request,
    find_duplicated_routing_header,
)
from mcp_types import SERVER_INFO_META_KEY, JSONRPCRequest
from mcp_types.methods import validate_client_request
from starlette.requests import Request

from catalog.domain.errors import InvalidInput
from catalog.domain.sizes import compact_json
from sessions.gateway.callers import Caller
from sessions.gateway.clients import name_client, note_client
from sessions.gateway.searching import search_text

_quote = json.encoder.encode_basestring


def answer_search(caller: Caller, request: Request, body: bytes, server_info: dict[str, Any]) -> bytes | None:
    """The response's body, with the search recorded; None where the library has to answer.

    The headers name a call of the search tool in the newest revision; whether the message says the same, is
    checked as the library does.
    """
    accepts_json, _ = check_accept_headers(request)
    if not accepts_json or find_duplicated_routing_header(request.headers.items()) is not None:
        return None
    try:
        message = json.loads(body)
        asked = JSONRPCRequest.model_validate(message)
        route = classify_inbound_request(message, headers=dict(request.headers))
        if not isinstance(route, InboundModernRoute) or asked.params is None:
            return None
        validate_client_request(asked.method, route.protocol_version, asked.params)
        client = name_client(caller, route.protocol_version, route.client_info)
        text = search_text(caller, client, asked.params.get("arguments") or {})
    except (ValueError, RecursionError, InvalidInput):
        return None
    note_client(caller, client, is_call=False)
    return _write(asked.id, text, server_info).encode(errors="backslashreplace")


def _write(request_id: str | int, text: str, server_info: dict[str, Any]) -> str:
    """Text and structured content say the same, so the text is written twice and read by nobody."""
    meta = compact_json({SERVER_INFO_META_KEY: server_info})
    return (
        f'{{"jsonrpc":"2.0","id":{json.dumps(request_id)},"result":'
        f'{{"content":[{{"type":"text","text":{_quote(text)}}}],"isError":false,"resultType":"complete",'
        f'"structuredContent":{text},"_meta":{meta}}}}}'
    )
