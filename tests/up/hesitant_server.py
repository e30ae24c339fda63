"""An MCP server over stdio that never answers the first time it is started, and at once every time after."""

import sys
import time
from pathlib import Path

from mcp.server import MCPServer

server = MCPServer("hesitant")


@server.tool()
def wave() -> str:
    """Say hello."""
    return "hello"


if __name__ == "__main__":
    marker = Path(sys.argv[1])
    if not marker.exists():
        marker.touch()
        time.sleep(3600)
    server.run()
