"""Writes approvals to the change record, and reads them back for an undo.

A record of one tool holds its approval before and after. A record of many holds, field by field, the ids of
the tools by their value, as other bulk changes do. A form is named by its revision's number, which people can
look up.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from django.utils.dateparse import parse_datetime

from catalog.access import actors
from catalog.domain.approvals import approval_after
from catalog.models import Change, Tool, ToolRevision
from catalog.models.changes import Subject
from catalog.services import changes
from catalog.services.batches import batches

BATCH_ROWS = 500
UNSET = "–"
FIELDS = frozenset({"approval", "approvedRevision", "approvedBy", "approvedAt"})

# What a record says of one tool's approval, by field; and of many, the ids by field and value.
Kept = dict[str, str]
Grouped = dict[str, dict[str, list[int]]]
Forms = Mapping[tuple[int, str], str]


def is_approval(change: Change) -> bool:
    """Whether a change record is about approvals."""
    return change.subject == Subject.TOOL and bool(change.before) and FIELDS.issuperset(change.before)


def describe_approvals(tools: Iterable[Tool]) -> dict[int, Kept]:
    """The approval fields by tool id."""
    found = list(tools)
    numbers = {(tool_id, digest): str(number) for tool_id, digest, number in _read_revisions(found)}
    return {
        tool.pk: {
            "approval": str(tool.approval),
            "approvedRevision": numbers.get((tool.pk, tool.baseline_digest), UNSET),
            "approvedBy": tool.approved_by or UNSET,
            "approvedAt": _write_time(tool.approved_at),
        }
        for tool in found
    }


def record_approvals(
    *, tools: Sequence[Tool], before: Mapping[int, Kept], after: Mapping[int, Kept], actor: actors.Actor
) -> Change:
    old: Mapping[str, object]
    new: Mapping[str, object]
    if len(tools) == 1:
        name, old, new = tools[0].qualified_name, before[tools[0].pk], after[tools[0].pk]
    else:
        name, (old, new) = f"{len(tools):,} tools", _group(before, after)
    return changes.record_change(actor=actor, subject=Subject.TOOL, name=name, before=old, after=new)


def read_side(change: Change, side: Mapping[str, object]) -> dict[int, Kept]:
    """One side of a record as each tool's fields, by id; without tools whose name belongs to another tool
    now.
    """
    found: dict[int, Kept] = defaultdict(dict)
    tool = changes.find_changed_tool(change)
    only = [] if tool is None else [tool.pk]
    for field, value in side.items():
        by_value = value if isinstance(value, dict) else {str(value): only}
        for kept, tool_ids in by_value.items():
            for tool_id in tool_ids:
                found[tool_id][field] = kept
    return dict(found)


def read_forms(tools: Sequence[Tool]) -> Forms:
    """Digests by tool and revision number."""
    return {(tool_id, str(number)): digest for tool_id, digest, number in _read_revisions(tools)}


def put_back(tool: Tool, kept: Kept, forms: Forms) -> None:
    """Restore a tool's approval from a record, which holds only the fields that changed."""
    if (number := kept.get("approvedRevision")) is not None:
        tool.baseline_digest = forms.get((tool.pk, number), "")
    if (name := kept.get("approvedBy")) is not None:
        tool.approved_by = "" if name == UNSET else name
    if (moment := kept.get("approvedAt")) is not None:
        tool.approved_at = None if moment == UNSET else parse_datetime(moment)
    tool.approval = approval_after(
        digest=tool.digest, baseline=tool.baseline_digest, is_approved=tool.approved_at is not None
    )


def _group(before: Mapping[int, Kept], after: Mapping[int, Kept]) -> tuple[Grouped, Grouped]:
    """Only the tools and fields that differ."""
    old: Grouped = {}
    new: Grouped = {}
    for tool_id, kept in sorted(before.items()):
        for field, was in kept.items():
            is_now = after[tool_id][field]
            if is_now != was:
                old.setdefault(field, {}).setdefault(was, []).append(tool_id)
                new.setdefault(field, {}).setdefault(is_now, []).append(tool_id)
    return old, new


def _read_revisions(tools: Sequence[Tool]) -> Iterator[tuple[int, str, int]]:
    for batch in batches([tool.pk for tool in tools], BATCH_ROWS):
        rows = ToolRevision.objects.filter(tool__in=batch).order_by("number")
        yield from rows.values_list("tool_id", "digest", "number")


def _write_time(moment: datetime | None) -> str:
    return moment.isoformat() if moment else UNSET
