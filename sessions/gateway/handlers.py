"""Answers MCP's methods: what a client may ask of the gateway."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Any

from django.db import DatabaseError
from mcp import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from catalog.domain.errors import InvalidInput, ToolSearchError
from sessions.domain.gateway_names import CALL_READ_TOOL, CALL_TOOL, DESCRIBE_TOOLS, READ_RESULT
from sessions.gateway import searching
from sessions.gateway.answers import JsonObject, answer_text
from sessions.gateway.arguments import read_arguments
from sessions.gateway.callers import Caller
from sessions.gateway.calling import Calls, unknown_tool
from sessions.gateway.clients import Context, caller_of, note_client, read_client
from sessions.gateway.recording import CallReport
from sessions.gateway.results import read_on
from sessions.gateway.threads import Threads
from sessions.models import Via
from sessions.services import kept_results

Handler = Callable[[Context, Any], Awaitable[Any]]
logger = logging.getLogger(__name__)


def with_mcp_errors(handler: Handler) -> Handler:
    """Turns every error into one of MCP's. Of unexpected ones no text is sent: it may hold anything."""

    @wraps(handler)
    async def guarded(context: Context, params: Any) -> Any:
        try:
            return await handler(context, params)
        except MCPError:
            raise
        except InvalidInput as problem:
            raise MCPError(code=INVALID_PARAMS, message=str(problem)) from None
        except DatabaseError:
            logger.exception("the database did not answer")
            raise MCPError(code=INTERNAL_ERROR, message="Not available now: try again.") from None
        except ToolSearchError as problem:
            raise MCPError(code=INTERNAL_ERROR, message=str(problem)) from None
        except Exception:
            logger.exception("%s failed", context.method)
            raise MCPError(code=INTERNAL_ERROR, message="Internal error") from None

    return guarded


class ToolHandlers:
    """`tools/list` and `tools/call`."""

    def __init__(self, calls: Calls, threads: Threads) -> None:
        self._calls = calls
        self._threads = threads

    async def list_tools(self, context: Context, params: Any) -> JsonObject:
        caller, client = caller_of(context), read_client(context)
        cursor = params.cursor if params is not None else None
        page = await self._threads.run(caller.offer.list_page, cursor)
        note_client(caller, client, is_call=False)
        result: JsonObject = {"tools": page.tools, "resultType": "complete"}
        return {**result, "nextCursor": page.next} if page.next else result

    async def call_tool(self, context: Context, params: Any) -> JsonObject:
        caller, name = caller_of(context), str(params.name)
        arguments = params.arguments or {}
        if name in caller.offer.own_names:
            return await self._call_own(context, caller, name, arguments)
        return await self._call(context, name, arguments, Via.DIRECT)

    async def _call_own(
        self, context: Context, caller: Caller, name: str, arguments: Mapping[str, Any]
    ) -> JsonObject:
        client = read_client(context)
        try:
            match name:
                case Via.CALL_TOOL | Via.CALL_READ_TOOL:
                    return await self._call_named(context, Via(name), arguments)
                case _ if name == caller.offer.search_name:
                    return await self._threads.run(searching.search, caller, client, arguments)
                case _ if name == DESCRIBE_TOOLS:
                    return await self._threads.run(searching.describe, caller, arguments)
                case _:
                    return await self._threads.run(_read_on, caller, arguments)
        except InvalidInput as problem:
            return self._calls.refuse_own(caller, client, name, str(problem), arguments)
        finally:
            note_client(caller, client, is_call=name in {CALL_TOOL, CALL_READ_TOOL, READ_RESULT})

    async def _call_named(self, context: Context, via: Via, given: Mapping[str, Any]) -> JsonObject:
        name = given.get("name")
        if not isinstance(name, str):
            raise InvalidInput.at("name", "must be the name of a tool")
        try:
            arguments = read_arguments(given)
        except InvalidInput as problem:
            report = self._report(context, name, via, {})
            return self._calls.refuse(report, str(problem))
        return await self._call(context, name, arguments, via)

    async def _call(self, context: Context, name: str, arguments: Mapping[str, Any], via: Via) -> JsonObject:
        return await self._calls.call(context, self._report(context, name, via, arguments))

    def _report(self, context: Context, name: str, via: Via, arguments: Mapping[str, Any]) -> CallReport:
        caller = caller_of(context)
        tool = caller.offer.by_name.get(name)
        if tool is None:
            raise unknown_tool(name)
        return CallReport(caller, read_client(context), tool, name, via, arguments)


def _read_on(caller: Caller, arguments: Mapping[str, Any]) -> JsonObject:
    handle, offset = arguments.get("handle"), arguments.get("offset")
    offset = 0 if offset is None else offset
    if not isinstance(handle, str):
        raise InvalidInput.at("handle", "must be the handle of a result that was cut")
    if type(offset) is not int or offset < 0:
        raise InvalidInput.at("offset", "must be a whole number from 0")
    text = kept_results.read_kept(key_id=caller.key_id, handle=handle)
    if text is None:
        raise InvalidInput.at("handle", "is not known: a result is kept for 15 minutes")
    if offset > len(text):
        raise InvalidInput.at("offset", f"is past the end: the result has {len(text)} characters")
    max_tokens = caller.policy.max_result_tokens
    return answer_text(read_on(text, offset, handle=handle, max_tokens=max_tokens))
