"""Describes the polls in the OpenAPI document; the addresses themselves lead to the plain views."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Router

from catalog.access.callers import ANY_KEY
from catalog.request_bodies import Text
from sessions.api import polling
from sessions.offers.rendering.formats import Discovered, Format, Hosted
from sessions.schemas import ToolListOut

router = Router(tags=["tool lists"], auth=ANY_KEY)


@router.get(
    "/sessions/{uuid:session_id}/tools",
    operation_id="get_session_tools",
    summary="A session's tool list",
    response={200: ToolListOut, 304: None},
)
def get_session_tools(
    request: HttpRequest,
    session_id: UUID,
    format: Format = Format.MCP,
    hosted: Hosted = Hosted.NO,
    discovered: Discovered = Discovered.DEFAULT,
) -> HttpResponse:
    """Poll with the last answer's `ETag` in `If-None-Match`: 304 says that nothing has changed."""
    return polling.poll_session(request, session_id)


@router.get(
    "/policies/{slug}/tools",
    operation_id="get_policy_tools",
    summary="A policy's tool list, without a session",
    response={200: ToolListOut, 304: None},
)
def get_policy_tools(
    request: HttpRequest,
    slug: Text,
    format: Format = Format.MCP,
    hosted: Hosted = Hosted.NO,
    discovered: Discovered = Discovered.DEFAULT,
) -> HttpResponse:
    """For agents that only poll. `ETag` and 304 as for a session."""
    return polling.poll_policy(request, slug)
