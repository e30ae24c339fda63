"""Middleware of the console: engine errors as pages, and sign-in for parts of pages."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render, resolve_url
from django_htmx.http import HttpResponseClientRedirect
from django_htmx.middleware import HtmxDetails

from catalog.domain.errors import InvalidInput, ToolSearchError
from toolsearch_site.edge.unavailable import API_PREFIX, answer_outage, is_outage


class ConsoleMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if HtmxDetails(request) and _leads_to_sign_in(response):
            # A browser follows a redirect unseen and would put the sign-in form into the part.
            return HttpResponseClientRedirect(resolve_url(settings.LOGIN_URL))
        return response

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Renders errors as pages; the API has its own handlers."""
        if is_outage(error):
            return answer_outage(request, error)
        if not isinstance(error, ToolSearchError) or request.path.startswith(API_PREFIX):
            return None
        context = {
            "status": error.status,
            "title": error.title,
            "message": str(error),
            "problems": error.errors if isinstance(error, InvalidInput) else (),
        }
        return render(request, "error.html", context, status=error.status)


def _leads_to_sign_in(response: HttpResponse) -> bool:
    location = response.headers.get("Location", "")
    return response.status_code == 302 and location.startswith(resolve_url(settings.LOGIN_URL))
