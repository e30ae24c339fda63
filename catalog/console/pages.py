"""Renders a whole page or its part, and finds the actor of a request."""

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django.utils.http import url_has_allowed_host_and_scheme
from django_htmx.middleware import HtmxDetails

from catalog.access import actors
from catalog.domain.errors import NotAllowed
from catalog.models import Change

VARIES_BY = ["HX-Request", "HX-Boosted", "HX-Target", "HX-History-Restore-Request"]


def render_page(
    request: HttpRequest, page: str, part: str, context: Mapping[str, Any], *, status: int = 200
) -> HttpResponse:
    """Answer with the part where htmx asks for it, else with the page that includes it."""
    template = part if wants_part(request) else page
    response = render(request, template, dict(context), status=status)
    patch_vary_headers(response, VARIES_BY)
    return response


def wants_part(request: HttpRequest) -> bool:
    """A boosted link without a target of its own, and a step back in history, need the whole page."""
    htmx = HtmxDetails(request)
    if not htmx or htmx.history_restore_request:
        return False
    return not htmx.boosted or bool(htmx.target)


def way_back(request: HttpRequest, *, otherwise: str) -> str:
    """The address that the form was opened from, if it is one of ours."""
    target = request.POST.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(
        target, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return target if is_ours else otherwise


def tell_done(request: HttpRequest, text: str, change: Change | None = None) -> None:
    """Say on the next page what was done, with an undo of that change where one is given."""
    messages.success(request, text, extra_tags=str(change.pk) if change else "")


def actor_of_request(request: HttpRequest) -> actors.Actor:
    if not isinstance(request.user, User):
        raise NotAllowed("sign in first")
    return actors.actor_of(request.user)
