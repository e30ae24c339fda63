"""Data of the overview's treemap: tokens by server and tool, or by server where there are very many tools."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from django.urls import reverse

from catalog.domain.choices import Outcome
from catalog.models import Decision, Policy, Server, Tool
from catalog.selectors.servers import ServerRow, largest_servers
from catalog.selectors.tool_decisions import verdicts_of
from catalog.selectors.tools import ToolFilter, largest_tools, sorted_tools
from catalog.selectors.totals import CatalogTotals

MAP_TOOLS = 500  # past this many, rectangles are servers, and a click on one shows its tools
MAP_SERVERS = 100
BAR_ROWS = 12


@dataclass(frozen=True, slots=True)
class Area:
    """One rectangle of the treemap; `value` in tokens, `url` its link, `opens` the address of its inside.

    `is_deferred` is None where nothing is decided: for a server with its tools drawn, and a tool that the
    policy hides.
    """

    name: str
    value: int
    url: str
    opens: str = ""
    is_deferred: bool | None = None
    children: "list[Area]" = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class TokenMap:
    """`share` is that of all tokens that the drawn servers have."""

    rows: list[ServerRow]
    areas: list[Area]
    shows_tools: bool
    share: float

    @property
    def is_cut(self) -> bool:
        """There are more servers than the map can show."""
        return len(self.areas) == MAP_SERVERS


def read_token_map(totals: CatalogTotals, policy: Policy | None) -> TokenMap:
    rows = largest_servers(MAP_SERVERS, totals)
    shows_tools = totals.tools <= MAP_TOOLS
    areas = _tools_by_server(rows, policy) if shows_tools else _servers_alone(rows, policy)
    share = sum(row.share for row in rows)
    return TokenMap(rows=rows[:BAR_ROWS], areas=areas, shows_tools=shows_tools, share=share)


def read_server_map(server: Server, policy: Policy | None) -> list[Area]:
    """The largest tools of one server."""
    tools = sorted_tools(ToolFilter(server=server.name)).select_related("server")
    return _tool_areas(tools.only("name", "qualified_name", "chars", "server__name")[:MAP_TOOLS], policy)


def _tools_by_server(rows: list[ServerRow], policy: Policy | None) -> list[Area]:
    largest = largest_tools(MAP_TOOLS)
    tools: dict[int, list[Area]] = {}
    for tool, area in zip(largest, _tool_areas(largest, policy), strict=True):
        tools.setdefault(tool.server_id, []).append(area)
    return [
        Area(
            row.server.name, row.tokens, row.server.get_absolute_url(), children=tools.get(row.server.pk, [])
        )
        for row in rows
    ]


def _servers_alone(rows: list[ServerRow], policy: Policy | None) -> list[Area]:
    """A server loads where one of its tools does."""
    loading: set[int] = set()
    if policy is not None:
        loaded = Decision.objects.filter(policy=policy, outcome=Outcome.LOAD).order_by()
        loading = set(loaded.values_list("tool__server", flat=True).distinct())
    return [
        Area(
            row.server.name,
            row.tokens,
            row.server.get_absolute_url(),
            opens=reverse(
                "server_map", args=[row.server.address], query={"policy": policy.slug if policy else ""}
            ),
            is_deferred=row.server.pk not in loading if policy else None,
        )
        for row in rows
    ]


def _tool_areas(tools: Iterable[Tool], policy: Policy | None) -> list[Area]:
    shown = list(tools)
    verdicts = verdicts_of(policy, shown)
    return [
        Area(
            tool.name,
            tool.tokens,
            tool.get_absolute_url(),
            is_deferred=verdicts[tool.pk].is_deferred if tool.pk in verdicts else None,
        )
        for tool in shown
    ]
