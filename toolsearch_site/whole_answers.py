"""Hands the web server answers in one piece, once nothing more is to be done for them.

What is not a list it would ask for piece by piece, and a database connection would wait for a slow reader.
"""

from collections.abc import Iterable
from typing import Any

from toolsearch_site.unchanged import Application, Environ, StartResponse


def whole_answers(application: Application) -> Application:
    """Wraps a WSGI application. What streams goes on as it is."""

    def answer(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        response: Any = application(environ, start_response)
        if getattr(response, "streaming", True):
            return response  # type: ignore[no-any-return]
        try:
            return [response.content]
        finally:
            response.close()

    return answer
