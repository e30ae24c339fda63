"""503 responses while the database is away or the disk is full, as problem JSON or as a page."""

import errno
import logging

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

from catalog.domain.errors import RETRY_AFTER_SECONDS, Unavailable
from toolsearch_site.edge.problem_json import problem

API_PREFIX = "/api/"
DETAIL = "A part of the service is away for a moment; try again soon."
DISK_DETAIL = "The disk is full, so nothing can be stored; what was stored is kept. Try again later."
POSTGRESQL_DISK_FULL = "53100"
SQLITE_DISK_FULL = "database or disk is full"

logger = logging.getLogger(__name__)


def is_outage(error: BaseException | None) -> bool:
    """Whether the database server is gone, restarting or out of connections: not caused by our code."""
    return isinstance(error, OperationalError | InterfaceError) or is_disk_full(error)


def is_disk_full(error: BaseException | None) -> bool:
    """Whether the disk of this machine or of the database is full."""
    while error is not None:
        if getattr(error, "errno", None) in {errno.ENOSPC, errno.EDQUOT}:
            return True
        if getattr(error, "sqlstate", None) == POSTGRESQL_DISK_FULL or str(error) == SQLITE_DISK_FULL:
            return True
        error = error.__cause__
    return False


def answer_outage(request: HttpRequest, error: BaseException) -> HttpResponse:
    """503 with `Retry-After`. Reads nothing from the database, so the page has no menu."""
    logger.warning("%s %s: %s", request.method, request.path, str(error).partition("\n")[0])
    is_full = is_disk_full(error)
    if request.path.startswith(API_PREFIX):
        answer = problem(Unavailable.status, DISK_DETAIL if is_full else DETAIL, title=Unavailable.title)
    else:
        answer = _page(is_full)
    answer["Retry-After"] = str(RETRY_AFTER_SECONDS)
    answer["Cache-Control"] = "no-store"
    return answer


def _page(is_full: bool) -> HttpResponse:
    return HttpResponse(render_to_string("503.html", {"disk_is_full": is_full}), status=503)
