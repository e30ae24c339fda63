"""One id for everything that a request sets off: in its answer, in the logs, and in the tasks it wakes."""

import contextvars
import random
import re
from collections.abc import Callable, Mapping

from django.http import HttpRequest, HttpResponse

HEADER = "X-Request-ID"
_SENT = "HTTP_X_REQUEST_ID"
# What a caller may choose: long enough to be its own, and harmless in a log.
_ACCEPTED = re.compile(r"[A-Za-z0-9._-]{8,64}")

request_id: contextvars.ContextVar[str] = contextvars.ContextVar("request_id", default="")


def request_ids(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware: keeps a proxy's id where it sent one, else makes one."""

    def answer(request: HttpRequest) -> HttpResponse:
        own = choose_id(request.META)
        token = request_id.set(own)
        try:
            response = get_response(request)
        finally:
            request_id.reset(token)
        response.headers[HEADER] = own
        return response

    return answer


def choose_id(environ: Mapping[str, str]) -> str:
    """The caller's, or one unlike any other, which is all it has to be: a secret would take much longer."""
    given = environ.get(_SENT, "")
    return given if given and _ACCEPTED.fullmatch(given) else f"{random.getrandbits(128):032x}"
