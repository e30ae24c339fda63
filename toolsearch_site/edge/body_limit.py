"""Refuses a request body that is larger than any form of ours, or has no length, before it is read.

Django limits the fields of a form but not its files. A file of this size is kept in memory.
"""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from catalog.access.callers import has_unmeasured_body
from catalog.domain.limits import BODY_BYTES

GetResponse = Callable[[HttpRequest], HttpResponse]


def body_limit(get_response: GetResponse) -> GetResponse:
    def answer(request: HttpRequest) -> HttpResponse:
        if has_unmeasured_body(request):
            context = {
                "status": 411,
                "title": "Length required",
                "message": "A request must say how long it is: one that comes in chunks is not read.",
            }
            return render(request, "error.html", context, status=411)
        length = str(request.META.get("CONTENT_LENGTH") or "0")
        if length.isdigit() and int(length) <= BODY_BYTES:
            return get_response(request)
        context = {"status": 413, "title": "Too large", "message": "A request has at most 1 MiB."}
        return render(request, "error.html", context, status=413)

    return answer
