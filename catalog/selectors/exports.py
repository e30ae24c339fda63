"""Tools of a filter as rows of an export, streamed instead of held in memory."""

from collections.abc import Iterator
from dataclasses import dataclass

from catalog.domain.definitions import is_read_only
from catalog.models import Decision, ToolTag
from catalog.selectors.tools import ToolFilter, sorted_tools

READ_AT_ONCE_ROWS = 1000
_FIELDS = (
    "name",
    "qualified_name",
    "title",
    "description",
    "chars",
    "loading",
    "hidden",
    "annotations",
    "read_only",
    "gone_at",
    "server__name",
    "server__demo",
)


@dataclass(frozen=True, slots=True)
class ExportRow:
    """`decision` and `reason` are empty where the policy does not list the tool."""

    name: str  # qualified
    server: str
    tool: str
    title: str
    description: str
    tokens: int
    characters: int
    loading: str
    state: str
    decision: str
    reason: str
    tags: tuple[str, ...]
    is_read_only: bool
    demo: bool


def export_rows(wanted: ToolFilter) -> Iterator[ExportRow]:
    decided = {
        tool_id: (outcome, reason)
        for tool_id, outcome, reason in Decision.objects.filter(policy=wanted.policy).values_list(
            "tool_id", "outcome", "reason"
        )
    }
    tags: dict[int, list[str]] = {}
    for tool_id, tag in ToolTag.objects.values_list("tool_id", "name"):
        tags.setdefault(tool_id, []).append(tag)
    tools = sorted_tools(wanted).select_related("server").only(*_FIELDS)
    for tool in tools.iterator(chunk_size=READ_AT_ONCE_ROWS):
        decision, reason = decided.get(tool.pk, ("", ""))
        yield ExportRow(
            name=tool.qualified_name,
            server=tool.server.name,
            tool=tool.name,
            title=tool.title,
            description=tool.description,
            tokens=tool.tokens,
            characters=tool.chars,
            loading=str(tool.loading),
            state=str(tool.state),
            decision=decision,
            reason=reason,
            tags=tuple(tags.get(tool.pk, ())),
            is_read_only=is_read_only(tool.read_only, tool.annotations),
            demo=tool.server.demo,
        )
