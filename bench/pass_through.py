"""A bare pass-through, to measure the gateway against. Served by granian as an ASGI application.

One connection to one server for each process; every request goes there and comes back. It checks no key,
decides nothing and records nothing. UPSTREAM is an address, or a command as JSON; ERA is `auto` or `legacy`.
"""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.client.session import ClientSession
from mcp.server.lowlevel import Server
from mcp_types import (
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    InputRequiredResult,
    ListToolsRequest,
    ListToolsResult,
)
from pydantic import TypeAdapter

_RESULT: TypeAdapter[CallToolResult | InputRequiredResult] = TypeAdapter(CallToolResult | InputRequiredResult)
_LIST = TypeAdapter(ListToolsResult)


def _find_upstream() -> str | StdioServerParameters:
    given = os.environ["UPSTREAM"]
    if not given.startswith("["):
        return given
    command, *arguments = json.loads(given)
    return StdioServerParameters(command=command, args=arguments, env=dict(os.environ))


@asynccontextmanager
async def _connected(server: Server[ClientSession]) -> AsyncIterator[ClientSession]:
    async with Client(_find_upstream(), mode=os.environ["ERA"], cache=None) as client:
        yield client.session


async def _list_tools(context: Any, params: Any) -> ListToolsResult:
    result: ListToolsResult = await context.lifespan_context.send_request(ListToolsRequest(), _LIST)
    return result


async def _call_tool(context: Any, params: Any) -> Any:
    call = CallToolRequestParams(name=params.name, arguments=params.arguments)
    return await context.lifespan_context.send_request(CallToolRequest(params=call), _RESULT)


application = Server(
    "pass-through",
    version="1",
    lifespan=_connected,
    get_tool_input_schema=lambda name: None,
    on_list_tools=_list_tools,
    on_call_tool=_call_tool,
).streamable_http_app(stateless_http=True, host="")
