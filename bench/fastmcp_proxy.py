"""FastMCP's proxy in front of one server: `python -m bench.fastmcp_proxy URL PORT`."""

import sys

from fastmcp.server import create_proxy

if __name__ == "__main__":
    url, port = sys.argv[1:]
    create_proxy(url, name="proxy").run(
        transport="http",
        host="127.0.0.1",
        port=int(port),
        stateless_http=True,
        json_response=True,
        show_banner=False,
        log_level="error",
    )
