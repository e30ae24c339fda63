"""A server on the SDK, over stdio: most of its tools are listed for clients that answer questions alone."""

from typing import Any

import anyio
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp_types import ListToolsResult, Tool

OBJECT = {"type": "object"}


async def list_tools(context: Any, params: Any) -> ListToolsResult:
    able = context.session.client_capabilities
    asking = ("elicitation", "sampling", "roots")
    names = ["plain", *(name for name in asking if able is not None and getattr(able, name) is not None)]
    return ListToolsResult(tools=[Tool(name=name, input_schema=OBJECT) for name in names])


server: Server[Any] = Server("asking", on_list_tools=list_tools)


async def run() -> None:
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(run)
