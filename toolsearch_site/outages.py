"""While the database is away: an answer at once that says to come back, for programs and for people."""

import json
import logging

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

API_PREFIX = "/api/"
RETRY_AFTER_SECONDS = 2
DETAIL = "A part of the service is away for a moment; try again soon."

logger = logging.getLogger(__name__)


def is_outage(error: BaseException | None) -> bool:
    """The server is gone, restarts, or has no connection left: nothing that a change of ours would mend."""
    return isinstance(error, OperationalError | InterfaceError)


def answer_outage(request: HttpRequest, error: BaseException) -> HttpResponse:
    """503 with `Retry-After`. Reads nothing from the database, so neither the menu nor who is signed in."""
    logger.warning("%s %s: %s", request.method, request.path, str(error).partition("\n")[0])
    answer = _problem() if request.path.startswith(API_PREFIX) else _page()
    answer["Retry-After"] = str(RETRY_AFTER_SECONDS)
    answer["Cache-Control"] = "no-store"
    return answer


def _problem() -> HttpResponse:
    body = {"type": "about:blank", "title": "Unavailable", "status": 503, "detail": DETAIL}
    return HttpResponse(json.dumps(body), status=503, content_type="application/problem+json")


def _page() -> HttpResponse:
    return HttpResponse(render_to_string("503.html"), status=503)
