"""Approves definitions, each in the form that the admin has seen."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import F
from django.utils import timezone

from catalog.access import actors
from catalog.access.roles import Role
from catalog.domain.approvals import newly_held
from catalog.domain.choices import Approval, Quarantine
from catalog.domain.errors import Conflict, NotFound
from catalog.models import Change, Tool
from catalog.services import approval_records, decisions
from catalog.services.batches import batches
from catalog.services.catalog_lock import lock_catalog
from catalog.services.tools import mark_facts_changed

BATCH_ROWS = 500
NAMES_TOLD = 5
_COLUMNS = ("approval", "baseline_digest", "approved_by", "approved_at")
_READ = ("qualified_name", "digest", *_COLUMNS)


@dataclass(frozen=True, slots=True)
class Settled:
    """How many tools were newly approved, and the record of it, None where there are none."""

    count: int
    change: Change | None


@lock_catalog()
def approve_tools(*, seen: Mapping[str, str], actor: actors.Actor) -> Settled:
    """Approve tools by qualified name, each in the form whose digest was seen: all of them or none.

    Raises Conflict for a tool that has changed since it was seen.
    """
    actors.require(actor, Role.ADMIN)
    tools = _hold(sorted(seen))
    _refuse_changed([tool.qualified_name for tool in tools if tool.digest != seen[tool.qualified_name]])
    waiting = [tool for tool in tools if tool.approval != Approval.APPROVED or not tool.approved_by]
    before = approval_records.describe_approvals(waiting)
    _write_approved(waiting, by=actor.label)
    return Settled(len(waiting), _conclude(waiting, before, actor))


@lock_catalog()
def restore_approvals(*, change: Change, actor: actors.Actor) -> Change | None:
    """Give the tools of a record the approval they had before, except those that changed since.

    None where no tool is left.
    """
    actors.require(actor, Role.ADMIN)
    wanted = approval_records.read_side(change, change.before)
    set_then = approval_records.read_side(change, change.after)
    tools = _hold_ids(sorted(wanted))
    before = approval_records.describe_approvals(tools)
    unchanged = [tool for tool in tools if set_then[tool.pk].items() <= before[tool.pk].items()]
    forms = approval_records.read_forms(unchanged)
    for tool in unchanged:
        approval_records.put_back(tool, wanted[tool.pk], forms)
    Tool.objects.bulk_update(unchanged, _COLUMNS, batch_size=BATCH_ROWS)
    return _conclude(unchanged, before, actor)


def trust_known(*, wanted: Quarantine, in_force: Iterable[Quarantine]) -> None:
    """Call with the catalog locked, before a policy's quarantine takes effect.

    Tools that no admin has reviewed are trusted in their current form, where nothing locked them so far.
    """
    held = newly_held(wanted, in_force)
    unseen = Tool.objects.filter(approved_at=None)
    touched: list[int] = []
    if Approval.CHANGED in held:
        changed = unseen.filter(approval=Approval.CHANGED)
        touched += changed.values_list("pk", flat=True)
        changed.update(approval=Approval.NEW, baseline_digest=F("digest"))
    if Approval.NEW in held:
        known = unseen.filter(approval=Approval.NEW)
        touched += known.values_list("pk", flat=True)
        known.update(approval=Approval.APPROVED, approved_at=timezone.now())
    _tell_followers(touched)


def _write_approved(tools: Sequence[Tool], *, by: str) -> None:
    """Updates rows and objects alike; the record is written from the objects. Few statements for any number
    of tools.
    """
    now = timezone.now()
    for tool in tools:
        tool.approval, tool.baseline_digest = Approval.APPROVED, tool.digest
        tool.approved_by, tool.approved_at = by, now
    for batch in batches([tool.pk for tool in tools], BATCH_ROWS):
        Tool.objects.filter(pk__in=batch).update(
            approval=Approval.APPROVED, baseline_digest=F("digest"), approved_by=by, approved_at=now
        )


def _hold(names: Sequence[str]) -> list[Tool]:
    tools: list[Tool] = []
    for batch in batches(names, BATCH_ROWS):
        listed = Tool.objects.filter(qualified_name__in=batch, gone_at=None)
        tools += listed.select_for_update().order_by("pk").only(*_READ)
    missing = sorted({*names}.difference(tool.qualified_name for tool in tools))
    if missing:
        raise NotFound(f"There is no tool named {', '.join(missing)}.")
    return tools


def _refuse_changed(names: Sequence[str]) -> None:
    if names:
        more = f" and {len(names) - NAMES_TOLD} more" if len(names) > NAMES_TOLD else ""
        raise Conflict(f"{', '.join(names[:NAMES_TOLD])}{more} changed since you looked")


def _hold_ids(tool_ids: Sequence[int]) -> list[Tool]:
    tools: list[Tool] = []
    for batch in batches(tool_ids, BATCH_ROWS):
        tools += Tool.objects.filter(pk__in=batch).select_for_update().order_by("pk").only(*_READ)
    return tools


def _conclude(
    tools: Sequence[Tool], before: Mapping[int, approval_records.Kept], actor: actors.Actor
) -> Change | None:
    """Request new decisions and record the change; None where nothing changed."""
    if not tools:
        return None
    _tell_followers([tool.pk for tool in tools])
    after = approval_records.describe_approvals(tools)
    old = {tool_id: before[tool_id] for tool_id in after}
    return approval_records.record_approvals(tools=tools, before=old, after=after, actor=actor)


def _tell_followers(tool_ids: Sequence[int]) -> None:
    if not tool_ids:
        return
    for batch in batches(tool_ids, BATCH_ROWS):
        mark_facts_changed(Tool.objects.filter(pk__in=batch))
    decisions.request_decisions()
