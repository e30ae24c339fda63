"""Buffers each response whole and closes it before the web server writes it.

A streamed response would keep its database connection while a slow client reads. The largest, files and
exports, have some megabytes.
"""

from collections.abc import Iterable
from typing import Any

from toolsearch_site.edge.not_modified import Application, Environ, StartResponse


def buffer_responses(application: Application) -> Application:
    """Wraps a WSGI application."""

    def answer(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        response: Any = application(environ, start_response)
        try:
            return [b"".join(response) if getattr(response, "streaming", True) else response.content]
        finally:
            response.close()

    return answer
