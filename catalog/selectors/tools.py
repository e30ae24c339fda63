"""Tools as pages show them."""

from dataclasses import dataclass
from enum import StrEnum

from django.db.models import Q, QuerySet

from catalog.domain.choices import Loading
from catalog.domain.errors import NotFound
from catalog.models import Server, Tool, ToolRevision
from catalog.models.tools import State
from catalog.selectors.paging import Page, cut_page

LARGEST_ROWS = 12
REVISION_ROWS = 20
SEARCHED_FIELDS = ("qualified_name", "name", "title", "description")
STATES = {
    State.ACTIVE: Q(gone_at=None, hidden=False),
    State.HIDDEN: Q(gone_at=None, hidden=True),
    State.GONE: Q(gone_at__isnull=False),
}
TABLE_FIELDS = (
    "name",
    "qualified_name",
    "title",
    "description",
    "chars",
    "loading",
    "hidden",
    "gone_at",
    "changed_at",
    "server__name",
    "server__enabled",
)


class ToolSort(StrEnum):
    NAME = "name"
    SIZE = "size"
    SERVER = "server"
    CHANGED = "changed"


ORDERS = {
    ToolSort.NAME: ("qualified_name",),
    ToolSort.SIZE: ("-chars", "qualified_name"),
    ToolSort.SERVER: ("server__name", "qualified_name"),
    ToolSort.CHANGED: ("-changed_at", "qualified_name"),
}


@dataclass(frozen=True, slots=True)
class ToolFilter:
    """What a reader wants to see; unset means all."""

    text: str = ""
    server: str = ""
    loading: Loading | None = None
    state: State | None = State.ACTIVE
    sort: ToolSort = ToolSort.SIZE

    @property
    def is_default(self) -> bool:
        """Nothing is filtered out, whatever the order."""
        return self == ToolFilter(sort=self.sort)


def tools_for_table(wanted: ToolFilter, *, page: str | int = 1) -> Page[Tool]:
    """One page, without the schemas: they are most of a row and the table shows none."""
    tools = matching_tools(wanted).order_by(*ORDERS[wanted.sort])
    return cut_page(tools.select_related("server").only(*TABLE_FIELDS), page)


def matching_tools(wanted: ToolFilter) -> "QuerySet[Tool]":
    tools: QuerySet[Tool] = Tool.objects.all()
    if wanted.state is not None:
        tools = tools.filter(STATES[wanted.state])
    if wanted.loading is not None:
        tools = tools.filter(loading=wanted.loading)
    if wanted.server:
        tools = tools.filter(server__name=wanted.server)
    for word in wanted.text.split():
        tools = tools.filter(_anywhere(word))
    return tools


def find_tool(qualified_name: str) -> Tool:
    tool = Tool.objects.select_related("server").filter(qualified_name=qualified_name).first()
    if tool is None:
        raise NotFound(f"There is no tool named {qualified_name}.")
    return tool


def revisions_of(tool: Tool) -> list[ToolRevision]:
    return list(tool.revisions.defer("definition").order_by("-number")[:REVISION_ROWS])


def tools_of_server(server: Server) -> list[Tool]:
    """The first page of a server's tools, largest first; the tools page has the rest."""
    return tools_for_table(ToolFilter(server=server.name)).rows


def largest_tools(limit: int = LARGEST_ROWS) -> list[Tool]:
    listed = Tool.objects.listed().select_related("server").order_by("-chars", "qualified_name")
    return list(listed.only(*TABLE_FIELDS)[:limit])


def _anywhere(word: str) -> Q:
    found = Q()
    for field in SEARCHED_FIELDS:
        found |= Q(**{f"{field}__icontains": word})
    return found
