"""Routes /api/ past the middleware that only browsers need: sessions, CSRF, messages, content security
policy.
"""

from collections.abc import Callable
from functools import lru_cache

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse
from django.urls import ResolverMatch, resolve

from toolsearch_site.edge.problem_json import problem

PREFIX = "/api/v1/"
# Pages of the API that a browser shows.
PAGES = frozenset({"/api/v1/docs", "/api/v1/"})
HEALTH = "/api/v1/health"  # asked by address, like /healthz
KEPT_ADDRESSES = 10_000
LONGEST_KEPT_CHARS = 300  # or callers could fill the memory


def dispatch_api(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware that answers REST calls itself: they carry a key and no cookies."""

    def answer(request: HttpRequest) -> HttpResponse:
        path = request.path_info
        if not path.startswith(PREFIX) or path in PAGES:
            return get_response(request)
        if path != HEALTH and not _is_for_us(request):
            return problem(400, "This host name is not one that the service answers to.")
        match = _find_kept_view(path) if len(path) <= LONGEST_KEPT_CHARS else _find_view(path)
        request.resolver_match = match
        response: HttpResponse = match.func(request, *match.args, **match.kwargs)
        return response

    return answer


def _is_for_us(request: HttpRequest) -> bool:
    try:
        request.get_host()
    except DisallowedHost:
        return False
    return True


def _find_view(path: str) -> ResolverMatch:
    return resolve(path, urlconf="toolsearch_site.api.urls")


# Agents ask the same few addresses all day, and finding the view took a sixth of a poll.
_find_kept_view = lru_cache(maxsize=KEPT_ADDRESSES)(_find_view)
