"""The MCP server of the gateway: which methods it has, and what answers each."""

from typing import Any

from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.lowlevel import Server
from mcp_types import ServerCapabilities

from sessions.gateway.clients import find_header_schema
from sessions.gateway.handlers import ToolHandlers, with_mcp_errors
from sessions.gateway.relaying import Relay
from sessions.gateway.streams import Listeners

NAME = "toolsearch"
INSTRUCTIONS = (
    "Tools of many servers behind one address. Those that are listed can be called by their names. Find the"
    " others with the search tool, then call them with call_read_tool, where they only read, or call_tool."
)
# A list depends on the key, and may change at any time.
_PRIVATE = CacheHint(ttl_ms=0, scope="private")
_HINTS: dict[CacheableMethod, CacheHint] = {
    "tools/list": _PRIVATE,
    "prompts/list": _PRIVATE,
    "resources/list": _PRIVATE,
    "resources/templates/list": _PRIVATE,
    "resources/read": _PRIVATE,
}


class GatewayServer(Server[Any]):
    """Says of itself what holds: lists are followed, single resources are not."""

    def get_capabilities(self, *args: Any, **options: Any) -> ServerCapabilities:
        capabilities = super().get_capabilities(*args, **options)
        if capabilities.resources is not None:
            capabilities.resources.subscribe = False
        return capabilities


def make_server(tools: ToolHandlers, relay: Relay, listeners: Listeners, *, version: str) -> Server[Any]:
    """What is not named here is refused as unknown: logging, and subscriptions to single resources."""
    server = GatewayServer(
        NAME,
        version=version,
        title="toolsearch",
        instructions=INSTRUCTIONS,
        cache_hints=_HINTS,
        # Without an answer here each call would list all tools first.
        get_tool_input_schema=find_header_schema,
        on_list_tools=with_mcp_errors(tools.list_tools),
        on_call_tool=with_mcp_errors(tools.call_tool),
        on_list_resources=with_mcp_errors(relay.list_resources),
        on_list_resource_templates=with_mcp_errors(relay.list_templates),
        on_read_resource=with_mcp_errors(relay.read_resource),
        on_list_prompts=with_mcp_errors(relay.list_prompts),
        on_get_prompt=with_mcp_errors(relay.get_prompt),
        on_completion=with_mcp_errors(relay.complete),
        on_subscriptions_listen=with_mcp_errors(listeners.listen),
    )
    server.middleware.clear()  # tracing of the SDK's own: traces are passed on as they come
    return server
