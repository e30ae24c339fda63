"""REST calls for tools."""

from dataclasses import replace

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router

from catalog.access.callers import ADMIN_KEY, ANY_KEY, Caller, caller_of
from catalog.api.preconditions import precondition_of, send_version
from catalog.domain.choices import Kind, Loading, ReadOnly
from catalog.domain.definitions import is_read_only
from catalog.models import Policy
from catalog.models.tools import State
from catalog.request_bodies import Text
from catalog.schemas.tools import DecisionOut, SizeOut, ToolIn, ToolOut, ToolPageOut, ToolQuery
from catalog.selectors import rest, search
from catalog.selectors.rest import ToolPage, ToolWithDecisions
from catalog.selectors.tools import ToolFilter, find_tool
from catalog.services import tool_settings
from catalog.tasks import wake_workers_on_commit

router = Router(tags=["tools"], auth=ANY_KEY)

# For these the database looks for the words of `q`.
NOT_INDEXED = (State.HIDDEN, State.GONE)


@router.get("/tools", operation_id="list_tools", summary="The catalog's tools", response=ToolPageOut)
def get_tools(request: HttpRequest, asked: Query[ToolQuery]) -> ToolPageOut:
    """By qualified name; with `q` the best match first, of at most 500.

    An agent sees its policy's tools. `state` is for admins.
    """
    caller = caller_of(request)
    page = _read_page(asked, state=asked.state if caller.is_admin else State.ACTIVE, policy=seen_by(caller))
    return ToolPageOut(items=[describe_tool(found) for found in page.tools], next=page.next)


@router.get("/tools/{name}", operation_id="get_tool", summary="One tool", response=ToolOut)
def get_tool(request: HttpRequest, response: HttpResponse, name: Text) -> ToolOut:
    """By qualified name. Its `ETag` is for the `If-Match` of a change."""
    return _answer(response, rest.read_tool(name, policy=seen_by(caller_of(request))))


@router.patch(
    "/tools/{name}",
    operation_id="change_tool",
    summary="Set a tool's loading, keywords, tags, visibility or whether it only reads",
    response=ToolOut,
    auth=ADMIN_KEY,
)
def change_tool(request: HttpRequest, response: HttpResponse, name: Text, wanted: ToolIn) -> ToolOut:
    """Fields that are left out stay.

    With an `If-Match` that no longer holds nothing is changed, and a 412 tells what has changed.
    """
    caller = caller_of(request)
    tool_settings.change_tool(
        tool=find_tool(name),
        actor=caller.actor,
        loading=wanted.loading,
        keywords=wanted.keywords,
        hidden=wanted.hidden,
        tags=wanted.tags,
        read_only=ReadOnly.of(wanted.read_only) if "read_only" in wanted.model_fields_set else None,
        if_unchanged=precondition_of(request),
    )
    wake_workers_on_commit()
    return _answer(response, rest.read_tool(name, policy=None))


def _answer(response: HttpResponse, found: ToolWithDecisions) -> ToolOut:
    described = describe_tool(found)
    send_version(response, tool_settings.version_of(found.tool, described.tags))
    return described


def _read_page(asked: ToolQuery, *, state: State | None, policy: Policy | None) -> ToolPage:
    wanted = ToolFilter(text=asked.q, server=asked.server, loading=asked.loading, state=state)
    if not asked.q.strip() or state in NOT_INDEXED:
        return rest.list_tool_page(wanted, policy=policy, limit=asked.limit, cursor=asked.cursor)
    found = search.find_tool_ids(query=asked.q, policy=policy, server=asked.server or None)
    shown = replace(wanted, text="", state=State.ACTIVE)
    return rest.list_found_tools(found, shown, policy=policy, limit=asked.limit, cursor=asked.cursor)


def seen_by(caller: Caller) -> Policy | None:
    """The policy that limits what the caller sees; None for an admin, who sees everything."""
    return None if caller.is_admin else caller.policy


def describe_tool(found: ToolWithDecisions) -> ToolOut:
    tool = found.tool
    return ToolOut(
        name=tool.qualified_name,
        tool=tool.name,
        server=tool.server.name,
        kind=Kind(tool.server.kind),
        title=tool.title,
        description=tool.description,
        inputSchema=tool.input_schema,
        outputSchema=tool.output_schema,
        annotations=tool.annotations,
        read_only=tool.read_only,
        is_read_only=is_read_only(tool.read_only, tool.annotations),
        meta=tool.meta,
        size=SizeOut(chars=tool.chars, tokens=tool.tokens),
        loading=Loading(tool.loading),
        keywords=tool.keywords,
        tags=[tag.name for tag in tool.tags.all()],
        state=tool.state,
        decisions={slug: DecisionOut.model_validate(made) for slug, made in found.decisions.items()},
    )
