"""A site behind the limits on slow clients whose work never ends, for `granian_server` to run."""

import os
import threading
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolsearch_site.settings")
django.setup()

from toolsearch_site.edge import liveness  # noqa: E402
from toolsearch_site.edge.granian_server import WAITING_REQUESTS  # noqa: E402
from toolsearch_site.edge.slow_clients import SlowClients  # noqa: E402


def site(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    if environ["PATH_INFO"] != liveness.PATH:
        threading.Event().wait()
    start_response("200 OK", [])
    return [b"ok\n"]


application = SlowClients(site, working_at_once=1, waiting_at_once=WAITING_REQUESTS)
