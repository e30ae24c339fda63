"""The MCP client, and the only importer of `mcp` in the engine.

Imported on first use: the SDK takes a second to import, and no web process and few commands need it.
"""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from catalog.upstream.client import list_tools
    from catalog.upstream.definitions import judge_definitions

__all__ = ["judge_definitions", "list_tools"]

_HOMES = {"list_tools": "catalog.upstream.client", "judge_definitions": "catalog.upstream.definitions"}

# These write addresses with their queries, session ids and whole messages into the log.
for _name in ("mcp", "client", "httpx2", "httpcore2"):
    logging.getLogger(_name).setLevel(logging.CRITICAL)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(import_module(_HOMES[name]), name)
