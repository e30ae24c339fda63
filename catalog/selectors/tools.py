"""Tools for pages."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from django.db.models import Q, QuerySet

from catalog.console.paging import Page, cut_page
from catalog.domain.choices import Loading, Outcome, Reason
from catalog.domain.errors import NotFound
from catalog.domain.sizes import CHARS_PER_TOKEN
from catalog.models import Policy, Server, Tool, ToolRevision, ToolTag
from catalog.models.tools import State
from catalog.selectors.decisions import decided_version
from catalog.selectors.tool_decisions import Verdict, verdicts_of

LARGEST_ROWS = 12
REVISION_ROWS = 10
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
    "approval",
    "approved_by",
    "mark_count",
    "facts_version",
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
    """None means all. Decision and reason are those of the policy."""

    text: str = ""
    server: str = ""
    loading: Loading | None = None
    state: State | None = State.ACTIVE
    policy: Policy | None = None
    outcome: Outcome | None = None
    reason: Reason | None = None
    tag: str = ""
    least_tokens: int = 0
    sort: ToolSort = ToolSort.SIZE
    is_reversed: bool = False

    @property
    def is_default(self) -> bool:
        """Whether nothing is filtered out, whatever the order and the policy."""
        return self == ToolFilter(policy=self.policy, sort=self.sort, is_reversed=self.is_reversed)


@dataclass(frozen=True, slots=True)
class ToolRow:
    """`is_deciding` where the tool has changed since the policy's decisions were made."""

    tool: Tool
    verdict: Verdict | None
    tags: tuple[str, ...]
    is_deciding: bool = False


def tools_for_table(wanted: ToolFilter, *, page: str | int = 1) -> Page[ToolRow]:
    """One page, without schemas, which are most of a row and not shown."""
    tools = sorted_tools(wanted).select_related("server")
    shown = cut_page(tools.only(*TABLE_FIELDS), page)
    return shown.with_rows(_rows(shown.rows, wanted.policy))


def sorted_tools(wanted: ToolFilter) -> "QuerySet[Tool]":
    tools = matching_tools(wanted).order_by(*ORDERS[wanted.sort])
    return tools.reverse() if wanted.is_reversed else tools


def matching_tools(wanted: ToolFilter) -> "QuerySet[Tool]":
    tools: QuerySet[Tool] = Tool.objects.filter(_decided_as(wanted))
    if wanted.state is not None:
        tools = tools.filter(STATES[wanted.state])
    exact = {"loading": wanted.loading, "server__name": wanted.server, "tags__name": wanted.tag}
    tools = tools.filter(**{field: value for field, value in exact.items() if value})
    if wanted.least_tokens:
        tools = tools.filter(chars__gt=(wanted.least_tokens - 1) * CHARS_PER_TOKEN)
    for word in wanted.text.split():
        tools = tools.filter(_anywhere(word))
    return tools


def tag_names() -> list[str]:
    return list(ToolTag.objects.order_by("name").values_list("name", flat=True).distinct())


def find_tool(qualified_name: str) -> Tool:
    tool = Tool.objects.select_related("server").filter(qualified_name=qualified_name).first()
    if tool is None:
        raise NotFound(f"There is no tool named {qualified_name}.")
    return tool


def revisions_of(tool: Tool) -> list[ToolRevision]:
    """The newest first."""
    return list(tool.revisions.order_by("-number")[:REVISION_ROWS])


def tools_of_server(server: Server, policy: Policy | None) -> list[ToolRow]:
    """The first page of a server's tools, largest first; the tools page has the rest."""
    return tools_for_table(ToolFilter(server=server.name, policy=policy)).rows


def largest_tools(limit: int = LARGEST_ROWS) -> list[Tool]:
    listed = Tool.objects.listed().select_related("server").order_by("-chars", "qualified_name")
    return list(listed.only(*TABLE_FIELDS)[:limit])


def tags_by_tool(tools: Iterable[Tool]) -> dict[int, list[str]]:
    """By tool id, in one query."""
    tags: dict[int, list[str]] = {}
    marked = ToolTag.objects.filter(tool__in=[tool.pk for tool in tools])
    for tool_id, name in marked.values_list("tool_id", "name"):
        tags.setdefault(tool_id, []).append(name)
    return tags


def _rows(tools: list[Tool], policy: Policy | None) -> list[ToolRow]:
    verdicts, tags, decided = verdicts_of(policy, tools), tags_by_tool(tools), decided_version(policy)
    return [
        ToolRow(
            tool,
            verdicts.get(tool.pk),
            tuple(tags.get(tool.pk, ())),
            is_deciding=tool.facts_version > decided,
        )
        for tool in tools
    ]


def _decided_as(wanted: ToolFilter) -> Q:
    """Tools with this policy's decision, outcome and reason."""
    exact = {"outcome": wanted.outcome, "reason": wanted.reason}
    given = {f"decisions__{field}": value for field, value in exact.items() if value}
    return Q(decisions__policy=wanted.policy, **given) if given and wanted.policy else Q()


def _anywhere(word: str) -> Q:
    found = Q()
    for field in SEARCHED_FIELDS:
        found |= Q(**{f"{field}__icontains": word})
    return found
