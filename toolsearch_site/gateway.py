"""The ASGI entry point of the gateway."""

import gc
import os

import django

from toolsearch_site.cluster.parent_death import die_with_parent
from toolsearch_site.cluster.undumpable import make_undumpable

make_undumpable()
die_with_parent()  # before the long imports, during which the parent may end
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolsearch_site.settings")
django.setup(set_prefix=False)

from collections.abc import Awaitable, Callable, MutableMapping  # noqa: E402  once the apps are loaded
from typing import Any  # noqa: E402

from catalog.search.wordvectors import find_encoder  # noqa: E402
from toolsearch_site.data_folder import read_keys  # noqa: E402
from toolsearch_site.edge.liveness import PATH as LIVENESS_PATH  # noqa: E402

read_keys()

# Opened now, or the first requests of this process would wait for it.
find_encoder()

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


async def application(scope: Message, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await _live(receive, send)
        return
    is_alive = scope["method"] == "GET" and scope["path"] == LIVENESS_PATH
    status, text = (200, b"ok\n") if is_alive else (404, b"not found\n")
    headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(text)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text})


async def _live(receive: Receive, send: Send) -> None:
    while True:
        happened = (await receive())["type"]
        await send({"type": f"{happened}.complete"})
        if happened == "lifespan.shutdown":
            return


# Freeze loaded code: otherwise every full garbage collection scans it, for a tenth of a second.
gc.collect()
gc.freeze()
