"""Mounts both apps' routers and turns each engine error into problem JSON."""

import functools
import json
import logging
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.core.serializers.json import DjangoJSONEncoder
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, URLResolver, path, re_path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError

from catalog.api import routers as catalog_routers
from catalog.domain.errors import (
    RETRY_AFTER_SECONDS,
    InvalidInput,
    OutdatedEdit,
    ToolSearchError,
    Unavailable,
)
from catalog.domain.rates import TooManyRequests
from sessions.api.calls import router as calls_router
from sessions.api.gateway_lists import router as gateway_lists_router
from sessions.api.polling import poll_policy, poll_session
from sessions.api.previews import router as previews_router
from sessions.api.searching import search_session
from sessions.api.sessions import router as sessions_router
from sessions.api.snapshots import router as snapshots_router
from sessions.api.tool_lists import router as tool_lists_router
from toolsearch_site.api.openapi import add_problems
from toolsearch_site.api.parsing import StrictParser
from toolsearch_site.edge.problem_json import problem
from toolsearch_site.edge.unavailable import answer_outage, is_outage

logger = logging.getLogger(__name__)

View = Callable[..., HttpResponse]


class Api(NinjaAPI):
    def get_openapi_schema(self, **options: Any) -> Any:
        """Ninja's document with the problem responses added to every operation."""
        return add_problems(super().get_openapi_schema(**options))


api = Api(
    title="toolsearch",
    version="1",
    description="Short tool lists for agents; the rest found and loaded on demand.",
    urls_namespace="api",
    parser=StrictParser(),
)
SESSION_ROUTERS = (
    previews_router,
    sessions_router,
    snapshots_router,
    tool_lists_router,
    calls_router,
    gateway_lists_router,
)
for mounted in (*catalog_routers, *SESSION_ROUTERS):
    api.add_router("", mounted)


@functools.cache
def api_urls() -> tuple[list[URLPattern | URLResolver], str, str]:
    """The API's routes. They need no sign-in: each operation checks its API key."""
    patterns, app_name, namespace = api.urls
    plain = [
        path("sessions/<uuid:session_id>/tools", require_safe(_tell_problems(poll_session))),
        path("policies/<str:slug>/tools", require_safe(_tell_problems(poll_policy))),
        path("sessions/<uuid:session_id>/search", require_POST(csrf_exempt(_tell_problems(search_session)))),
    ]
    routes = [*plain, *patterns, re_path(r"", _find_nothing)]
    for route in routes:
        if isinstance(route, URLPattern):
            route.callback = login_not_required(_explain_refusals(route.callback))
    return routes, app_name, namespace


@api.exception_handler(ToolSearchError)
def on_engine_error(request: HttpRequest, error: ToolSearchError) -> HttpResponse:
    errors = (
        [{"place": item.place, "message": item.message} for item in error.errors]
        if isinstance(error, InvalidInput)
        else None
    )
    answer = problem(error.status, str(error), title=error.title, errors=errors)
    if isinstance(error, OutdatedEdit):
        answer = _tell_outdated(answer, error)
    elif isinstance(error, TooManyRequests):
        answer["Retry-After"] = str(error.retry_after_seconds)
    elif isinstance(error, Unavailable):
        answer["Retry-After"] = str(RETRY_AFTER_SECONDS)
    return answer


def _tell_outdated(answer: HttpResponse, error: OutdatedEdit) -> HttpResponse:
    """412 with the fields that have changed; of a secret, only that it changed."""
    body = json.loads(answer.content)
    body["changed"] = [
        {"field": one.field, "by": one.actor or None, "at": one.at}
        | ({"value": one.value} if one.is_shown else {})
        for one in error.changed
    ]
    answer.content = json.dumps(body, cls=DjangoJSONEncoder).encode()
    answer["ETag"] = f'"{error.version}"'
    return answer


@api.exception_handler(ValidationError)
def on_invalid_request(request: HttpRequest, error: ValidationError) -> HttpResponse:
    errors = [{"place": _place_of(item["loc"]), "message": item["msg"]} for item in error.errors]
    return problem(422, "The request cannot be understood.", title="Invalid input", errors=errors)


def _place_of(steps: Sequence[str | int]) -> str:
    """The path of an error as the caller sees it: Ninja puts the name of our parameter after `body`."""
    seen = (steps[0], *steps[2:]) if steps[0] == "body" and len(steps) > 2 else steps
    return ".".join(map(str, seen))


@api.exception_handler(HttpError)
def on_unreadable_body(request: HttpRequest, error: HttpError) -> HttpResponse:
    """400 for a body that is not JSON, or is JSON that cannot be stored."""
    errors = [{"place": "body", "message": str(error.__cause__ or error)}]
    return problem(422, "The request's body cannot be read.", title="Invalid input", errors=errors)


@api.exception_handler(Http404)
def on_missing_object(request: HttpRequest, error: Http404) -> HttpResponse:
    return problem(404, str(error) or "There is nothing here.")


@api.exception_handler(Exception)
def on_failure(request: HttpRequest, error: Exception) -> HttpResponse:
    """500 for the caller, the traceback for the log."""
    if is_outage(error):
        return answer_outage(request, error)
    logger.error("%s %s failed", request.method, request.path, exc_info=error)
    return problem(500, "Something went wrong here; the log has the details.")


def _tell_problems(view: View) -> View:
    """Gives plain views the error handling that Ninja gives its own."""

    @functools.wraps(view)
    def guarded(request: HttpRequest, **arguments: Any) -> HttpResponse:
        try:
            return view(request, **arguments)
        except ToolSearchError as error:
            return on_engine_error(request, error)
        except Exception as error:
            return on_failure(request, error)

    return guarded


def _explain_refusals(view: View) -> View:
    """Answers 405 as problem JSON."""

    @functools.wraps(view)
    def explained(request: HttpRequest, *positional: Any, **arguments: Any) -> HttpResponse:
        answer = view(request, *positional, **arguments)
        if answer.status_code != HTTPStatus.METHOD_NOT_ALLOWED:
            return answer
        allowed = answer.headers.get("Allow", "")
        refusal = problem(405, f"{request.method} is not possible here; {allowed} is.")
        refusal["Allow"] = allowed
        return refusal

    return explained


@csrf_exempt
def _find_nothing(request: HttpRequest) -> HttpResponse:
    return problem(404, "There is nothing at this address.")
