"""The MCP client, and the only importer of `mcp` in the engine."""

import logging

from catalog.upstream.client import list_tools
from catalog.upstream.definitions import judge_definitions

__all__ = ["judge_definitions", "list_tools"]

# These write addresses with their queries, session ids and whole messages into the log.
for _name in ("mcp", "client", "httpx2", "httpcore2"):
    logging.getLogger(_name).setLevel(logging.CRITICAL)
