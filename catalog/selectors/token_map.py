"""Data of the overview's treemap: tokens by server and tool."""

from dataclasses import dataclass, field

from catalog.models import Policy
from catalog.selectors.servers import ServerRow, largest_servers
from catalog.selectors.tool_decisions import verdicts_of
from catalog.selectors.tools import largest_tools
from catalog.selectors.totals import CatalogTotals

TREEMAP_SERVERS = 40
TREEMAP_TOOLS = 400
BAR_ROWS = 12


@dataclass(frozen=True, slots=True)
class Area:
    """One rectangle of the treemap; `value` in tokens, `url` its link. The rest sums up many small ones.

    `is_deferred` is None where nothing is decided: for a server, the rest, and a tool that the policy hides.
    """

    name: str
    value: int
    url: str
    is_rest: bool = False
    is_deferred: bool | None = None
    children: "list[Area]" = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class TokenMap:
    rows: list[ServerRow]
    areas: list[Area]
    is_cut: bool  # there are more servers than the map can show


def read_token_map(totals: CatalogTotals, policy: Policy | None) -> TokenMap:
    """The largest servers and, within them, the largest tools; the rest is summed up."""
    rows = largest_servers(TREEMAP_SERVERS, totals)
    return TokenMap(rows=rows[:BAR_ROWS], areas=_areas(rows, policy), is_cut=len(rows) == TREEMAP_SERVERS)


def _areas(rows: list[ServerRow], policy: Policy | None) -> list[Area]:
    largest = largest_tools(TREEMAP_TOOLS)
    verdicts = verdicts_of(policy, largest)
    tools: dict[int, list[Area]] = {}
    for tool in largest:
        verdict = verdicts.get(tool.pk)
        is_deferred = verdict.is_deferred if verdict else None
        area = Area(tool.name, tool.tokens, tool.get_absolute_url(), is_deferred=is_deferred)
        tools.setdefault(tool.server_id, []).append(area)
    return [_server_area(row, tools.get(row.server.pk, [])) for row in rows]


def _server_area(row: ServerRow, shown: list[Area]) -> Area:
    url = row.server.get_absolute_url()
    rest_tokens = row.tokens - sum(area.value for area in shown)
    if len(shown) < row.tools and rest_tokens > 0:
        shown = [*shown, Area(f"{row.tools - len(shown)} more", rest_tokens, url, is_rest=True)]
    return Area(row.server.name, row.tokens, url, children=shown)
