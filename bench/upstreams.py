"""Many HTTP servers in one process: `python -m bench.upstreams COUNT` prints a port a line, and serves."""

import asyncio
import socket
import sys

import uvicorn

from tests.harness.upstream_fixture import make_server


def _listen() -> socket.socket:
    """Named as TCP, or asyncio would let small answers wait for 40 ms (Nagle's algorithm)."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    return listener


async def serve(count: int) -> None:
    listeners = [_listen() for _ in range(count)]
    for listener in listeners:
        print(listener.getsockname()[1], flush=True)
    configs = [
        uvicorn.Config(make_server().streamable_http_app(), log_level="critical", ws="none")
        for _ in listeners
    ]
    await asyncio.gather(
        *(
            uvicorn.Server(config).serve([listener])
            for config, listener in zip(configs, listeners, strict=True)
        )
    )


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
