"""Hands the web server answers in one piece, once nothing more is to be done for them.

What is not a list it would ask for piece by piece, and a database connection would wait for a slow reader.
That holds for files and exports too, of which the largest have some megabytes.
"""

from collections.abc import Iterable
from typing import Any

from toolsearch_site.unchanged import Application, Environ, StartResponse


def whole_answers(application: Application) -> Application:
    """Wraps a WSGI application."""

    def answer(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        response: Any = application(environ, start_response)
        try:
            return [b"".join(response) if getattr(response, "streaming", True) else response.content]
        finally:
            response.close()

    return answer
