"""Takes REST calls out of the line before the browser's middleware: they have a key and no cookies."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.urls import resolve

PREFIX = "/api/v1/"
# Pages of the API that a browser shows.
PAGES = frozenset({"/api/v1/docs", "/api/v1/"})


def api_first(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Sessions, sign-in, CSRF tokens, messages and content policies mean nothing to a caller with a key."""

    def answer(request: HttpRequest) -> HttpResponse:
        path = request.path_info
        if not path.startswith(PREFIX) or path in PAGES:
            return get_response(request)
        match = resolve(path, urlconf="toolsearch_site.api_urls")
        request.resolver_match = match
        response: HttpResponse = match.func(request, *match.args, **match.kwargs)
        return response

    return answer
