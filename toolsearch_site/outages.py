"""While the database is away, or the disk full: an answer at once that says so, for programs and people."""

import errno
import json
import logging

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

from catalog.domain.errors import RETRY_AFTER_SECONDS, Unavailable

API_PREFIX = "/api/"
PROBLEM_TYPE = "application/problem+json"
DETAIL = "A part of the service is away for a moment; try again soon."
DISK_DETAIL = "The disk is full, so nothing can be stored; what was stored is kept. Try again later."
POSTGRESQL_DISK_FULL = "53100"
SQLITE_DISK_FULL = "database or disk is full"

logger = logging.getLogger(__name__)


def is_outage(error: BaseException | None) -> bool:
    """The server is gone, restarts, or has no connection left: nothing that a change of ours would mend."""
    return isinstance(error, OperationalError | InterfaceError) or is_disk_full(error)


def is_disk_full(error: BaseException | None) -> bool:
    """Of this machine, or of the database's."""
    while error is not None:
        if getattr(error, "errno", None) in {errno.ENOSPC, errno.EDQUOT}:
            return True
        if getattr(error, "sqlstate", None) == POSTGRESQL_DISK_FULL or str(error) == SQLITE_DISK_FULL:
            return True
        error = error.__cause__
    return False


def answer_outage(request: HttpRequest, error: BaseException) -> HttpResponse:
    """503 with `Retry-After`. Reads nothing from the database, so neither the menu nor who is signed in."""
    logger.warning("%s %s: %s", request.method, request.path, str(error).partition("\n")[0])
    is_full = is_disk_full(error)
    answer = _problem(is_full) if request.path.startswith(API_PREFIX) else _page(is_full)
    answer["Retry-After"] = str(RETRY_AFTER_SECONDS)
    answer["Cache-Control"] = "no-store"
    return answer


def write_problem(status: int, title: str, detail: str) -> str:
    """JSON in the form of RFC 9457."""
    return json.dumps({"type": "about:blank", "title": title, "status": status, "detail": detail})


def _problem(is_full: bool) -> HttpResponse:
    text = write_problem(Unavailable.status, Unavailable.title, DISK_DETAIL if is_full else DETAIL)
    return HttpResponse(text, status=Unavailable.status, content_type=PROBLEM_TYPE)


def _page(is_full: bool) -> HttpResponse:
    return HttpResponse(render_to_string("503.html", {"disk_is_full": is_full}), status=503)
