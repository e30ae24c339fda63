"""Refuses a request that is larger than anything a form of ours sends, before a byte of it is read.

Django bounds the fields of a form but not the files in it, and no form of ours takes one.
"""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

Handler = Callable[[HttpRequest], HttpResponse]


def body_limit(get_response: Handler) -> Handler:
    def answer(request: HttpRequest) -> HttpResponse:
        length = str(request.META.get("CONTENT_LENGTH") or "0")
        if length.isdigit() and int(length) <= settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
            return get_response(request)
        context = {"status": 413, "title": "Too large", "message": "A request has at most 1 MiB."}
        return render(request, "error.html", context, status=413)

    return answer
