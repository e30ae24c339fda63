"""The catalog for REST, page by page. An agent sees only what its policy shows."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum
from django.db.models.functions import Coalesce

from catalog.console.cursors import read_cursor, write_cursor
from catalog.domain.approvals import held_by
from catalog.domain.choices import Quarantine
from catalog.domain.errors import InvalidInput, NotFound
from catalog.domain.sizes import tokens_of
from catalog.models import Decision, Policy, Server, Tool
from catalog.selectors.servers import ACTIVE_TOOLS, at_address
from catalog.selectors.tools import ToolFilter, matching_tools

Decisions = dict[str, dict[str, str]]


@dataclass(frozen=True, slots=True)
class ToolWithDecisions:
    """`decisions` by policy: all of them, or only the one that the reader uses."""

    tool: Tool
    decisions: Decisions


@dataclass(frozen=True, slots=True)
class ToolPage:
    tools: list[ToolWithDecisions]
    next: str | None


@dataclass(frozen=True, slots=True)
class ServerWithSizes:
    server: Server
    tools: int
    tokens: int


@dataclass(frozen=True, slots=True)
class ServerPage:
    servers: list[ServerWithSizes]
    next: str | None


def list_tool_page(wanted: ToolFilter, *, policy: Policy | None, limit: int, cursor: str | None) -> ToolPage:
    """In order of qualified names. `policy` is an agent's own; None sees everything."""
    tools = _shown_tools(wanted, policy)
    if cursor:
        tools = tools.filter(qualified_name__gt=read_cursor(cursor, parts=1)[0])
    found = list(tools.order_by("qualified_name")[: limit + 1])
    following = write_cursor(found[limit - 1].qualified_name) if len(found) > limit else None
    return ToolPage(_with_decisions(found[:limit], policy), following)


def list_found_tools(
    ids: Sequence[int], wanted: ToolFilter, *, policy: Policy | None, limit: int, cursor: str | None
) -> ToolPage:
    """In the order of `ids`, a search's result; tools removed since are left out."""
    start = _read_place(cursor) if cursor else 0
    shown = _shown_tools(wanted, policy)
    ranks = {tool_id: rank for rank, tool_id in enumerate(ids)}
    fitting = sorted(shown.filter(pk__in=ids).values_list("pk", flat=True), key=ranks.__getitem__)
    on_page = fitting[start : start + limit]
    found = sorted(shown.filter(pk__in=on_page), key=lambda tool: ranks[tool.pk])
    following = write_cursor(str(start + limit)) if len(fitting) > start + limit else None
    return ToolPage(_with_decisions(found, policy), following)


def read_tool(qualified_name: str, *, policy: Policy | None) -> ToolWithDecisions:
    """Raises NotFound for a tool that the policy does not show."""
    tools = Tool.objects.filter(qualified_name=qualified_name)
    if policy is not None:
        tools = tools.listed().filter(_is_shown_by(policy))
    found = list(tools.select_related("server").prefetch_related("tags"))
    if not found:
        raise NotFound(f"There is no tool named {qualified_name}.")
    return _with_decisions(found, policy)[0]


def list_visible_servers(*, policy: Policy | None, limit: int, cursor: str | None) -> ServerPage:
    """By name, with the tools and tokens that the caller can see."""
    servers = _with_sizes(policy)
    if cursor:
        servers = servers.filter(name__gt=read_cursor(cursor, parts=1)[0])
    found = list(servers.order_by("name")[: limit + 1])
    following = write_cursor(found[limit - 1].name) if len(found) > limit else None
    return ServerPage([_size(server) for server in found[:limit]], following)


def read_server(address: str, *, policy: Policy | None) -> ServerWithSizes:
    server = _with_sizes(policy).filter(at_address(address)).first()
    if server is None:
        raise NotFound(f"There is no server named {address}.")
    return _size(server)


def _shown_tools(wanted: ToolFilter, policy: Policy | None) -> "QuerySet[Tool]":
    tools = matching_tools(wanted).select_related("server").prefetch_related("tags")
    return tools if policy is None else tools.filter(_is_shown_by(policy))


def _is_shown_by(policy: Policy) -> Q:
    """Decisions follow a change within two seconds; locking takes effect at once."""
    held = held_by(Quarantine(policy.quarantine))
    return Q(decisions__policy=policy, server__enabled=True) & ~Q(approval__in=held)


def _read_place(cursor: str) -> int:
    (place,) = read_cursor(cursor, parts=1)
    if not (place.isascii() and place.isdigit() and len(place) < 10):
        raise InvalidInput.at("query.cursor", "is no cursor of this list")
    return int(place)


def _with_decisions(tools: Sequence[Tool], policy: Policy | None) -> list[ToolWithDecisions]:
    rows = Decision.objects.filter(tool__in=[tool.pk for tool in tools])
    if policy is not None:
        rows = rows.filter(policy=policy)
    by_tool: dict[int, Decisions] = defaultdict(dict)
    for tool_id, slug, outcome, reason in rows.order_by("policy__slug").values_list(
        "tool_id", "policy__slug", "outcome", "reason"
    ):
        by_tool[tool_id][slug] = {"decision": outcome, "reason": reason}
    return [ToolWithDecisions(tool, by_tool[tool.pk]) for tool in tools]


def _with_sizes(policy: Policy | None) -> QuerySet[Any]:
    servers: QuerySet[Any] = Server.objects.select_related("oauth_client", "oauth_grant")
    counted = ACTIVE_TOOLS
    if policy is not None:
        counted = ACTIVE_TOOLS & Q(tools__decisions__policy=policy)
        servers = servers.filter(enabled=True, tools__decisions__policy=policy)
    sized: QuerySet[Any] = servers.annotate(
        tool_count=Count("tools", filter=counted, distinct=True),
        tool_chars=Coalesce(Sum("tools__chars", filter=counted), 0),
    )
    return sized


def _size(server: Any) -> ServerWithSizes:
    return ServerWithSizes(server, server.tool_count, tokens_of(server.tool_chars))
