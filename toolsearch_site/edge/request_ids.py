"""Request ids: one id in the response, in the logs and in the tasks that a request starts."""

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
    """Middleware: keeps the proxy's id where there is one, else makes one."""

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
    """The caller's id, or a unique one. It need not be secret, which would take much longer."""
    given = environ.get(_SENT, "")
    return given if given and _ACCEPTED.fullmatch(given) else f"{random.getrandbits(128):032x}"
