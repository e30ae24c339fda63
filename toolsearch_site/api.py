"""The REST API: mounts each app's router, and turns each of the engine's errors into a problem once."""

import json
from http import HTTPStatus
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, URLResolver
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, ValidationError

from catalog.api import router as catalog_router
from catalog.domain.errors import InvalidInput, ToolSearchError

api = NinjaAPI(
    title="toolsearch",
    version="1",
    description="Short tool lists for agents; the rest found and loaded on demand.",
    urls_namespace="api",
)
api.add_router("", catalog_router)


def api_urls() -> tuple[list[URLPattern | URLResolver], str, str]:
    """The API's routes: open to callers who have not signed in, each operation asks for a key itself."""
    patterns, app_name, namespace = api.urls
    for pattern in patterns:
        if isinstance(pattern, URLPattern):
            login_not_required(pattern.callback)
    return patterns, app_name, namespace


def problem(
    status: int, detail: str, *, title: str = "", errors: list[dict[str, str]] | None = None
) -> HttpResponse:
    """An answer in the form of RFC 9457."""
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": title or HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
    }
    if errors is not None:
        body["errors"] = errors
    return HttpResponse(json.dumps(body), status=status, content_type="application/problem+json")


@api.exception_handler(ToolSearchError)
def on_engine_error(request: HttpRequest, error: ToolSearchError) -> HttpResponse:
    errors = (
        [{"place": item.place, "message": item.message} for item in error.errors]
        if isinstance(error, InvalidInput)
        else None
    )
    return problem(error.status, str(error), title=error.title, errors=errors)


@api.exception_handler(ValidationError)
def on_invalid_request(request: HttpRequest, error: ValidationError) -> HttpResponse:
    errors = [
        {"place": ".".join(str(step) for step in item["loc"]), "message": item["msg"]}
        for item in error.errors
    ]
    return problem(422, "The request cannot be understood.", title="Invalid input", errors=errors)


@api.exception_handler(AuthenticationError)
def on_missing_key(request: HttpRequest, error: AuthenticationError) -> HttpResponse:
    return problem(401, "Send a key that is in force: Authorization: Bearer <key>.")


@api.exception_handler(Http404)
def on_missing_object(request: HttpRequest, error: Http404) -> HttpResponse:
    return problem(404, str(error) or "There is nothing here.")
