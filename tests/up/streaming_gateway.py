"""A gateway whose answers never end, for `gateway_server` to run."""

import asyncio
from typing import Any

from toolsearch_site.cluster.parent_death import die_with_parent

die_with_parent()


async def application(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while True:
        await send({"type": "http.response.body", "body": b"more\n", "more_body": True})
        await asyncio.sleep(0.2)
