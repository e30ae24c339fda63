"""Keeps every policy's decided list equal to catalog and policy, by what a change touched."""

from collections.abc import Mapping, Sequence

from django.db import transaction

from catalog.domain import decide as domain
from catalog.domain.facts import ToolFacts
from catalog.domain.policy import Policy as DomainPolicy
from catalog.models import CatalogVersion, DecidedList, Decision, Job, Policy, Tool
from catalog.models.jobs import JobKind
from catalog.models.tools import ToolQuerySet
from catalog.selectors.decisions import count_behind
from catalog.selectors.facts import read_facts, read_policy
from catalog.services import jobs
from catalog.services.batches import batches
from catalog.services.tallies import KeptDecision, Tally

# Past this many changed tools, deciding all of them is quicker than finding each one's old decision.
LARGEST_STEP_TOOLS = 1000
BATCH_ROWS = 500


def request_decisions() -> None:
    """Ask for the decisions to follow a change. A burst of changes is one job."""
    jobs.request_job(kind=JobKind.DECIDE)


def request_if_behind() -> None:
    if count_behind():
        jobs.ensure_job(kind=JobKind.DECIDE)


def run_decisions(job: Job) -> None:
    bring_up_to_date()


def bring_up_to_date() -> None:
    """Decide what changed, policy by policy; each policy's list changes in one transaction."""
    for policy_id in Policy.objects.values_list("pk", flat=True):
        _follow(policy_id)


@transaction.atomic
def _follow(policy_id: int) -> None:
    DecidedList.objects.get_or_create(policy_id=policy_id)
    decided = DecidedList.objects.select_for_update().get(policy_id=policy_id)
    row = Policy.objects.get(pk=policy_id)
    policy = read_policy(row)
    # Read before the tools: what is committed meanwhile is then decided twice, and never missed.
    catalog_version = CatalogVersion.current()
    newer = Tool.objects.filter(facts_version__gt=decided.catalog_version).values_list("pk", flat=True)
    touched = list(newer[: LARGEST_STEP_TOOLS + 1])
    is_step = decided.policy_version == row.version and len(touched) <= LARGEST_STEP_TOOLS
    if not (is_step and _decide(decided, policy, touched)):
        _decide(decided, policy, None)
    decided.catalog_version, decided.policy_version = catalog_version, row.version
    decided.save()


def _decide(decided: DecidedList, policy: DomainPolicy, touched: Sequence[int] | None) -> bool:
    """Decide the tools with these ids, or all of them for None.

    False, with nothing changed, when the step would flip the threshold: then all tools must be decided.
    """
    scope = Tool.objects.all() if touched is None else Tool.objects.filter(pk__in=touched)
    old = _read_old(decided.policy_id, touched)
    new = _read_visible(policy, scope)
    tally = Tally() if touched is None else Tally.of(decided).take(old.values())
    totals = tally.totals
    for facts in new.values():
        totals = totals.with_tool(facts)
    reading = domain.measure_safely(policy, totals)
    if touched is not None and reading.over != decided.over:
        return False
    situation = domain.prepare(policy, reading)
    wanted = {
        tool_id: KeptDecision(facts.kind, facts.chars or 0, decision.outcome, decision.reason)
        for tool_id, facts in new.items()
        for decision in (domain.decide_one(facts, situation),)
    }
    if _store(decided.policy_id, old, wanted):
        decided.version += 1
    decided.over = reading.over
    tally.add(wanted.values()).write(decided)
    return True


def _read_old(policy_id: int, touched: Sequence[int] | None) -> dict[int, KeptDecision]:
    rows = Decision.objects.filter(policy_id=policy_id)
    if touched is not None:
        rows = rows.filter(tool_id__in=touched)
    columns = ("tool_id", "tool__server__kind", "chars", "outcome", "reason")
    return {tool_id: KeptDecision(*kept) for tool_id, *kept in rows.values_list(*columns)}


def _read_visible(policy: DomainPolicy, scope: ToolQuerySet) -> dict[int, ToolFacts]:
    listed = list(read_facts(scope.listed()))
    ids = {known.facts.name: known.id for known in listed}
    shown = domain.visible_tools((known.facts for known in listed), policy)
    return {ids[facts.name]: facts for facts in shown}


def _store(policy_id: int, old: Mapping[int, KeptDecision], new: Mapping[int, KeptDecision]) -> bool:
    """Write only what differs. False when nothing does."""
    gone = [tool_id for tool_id in old if tool_id not in new]
    changed = [tool_id for tool_id, kept in new.items() if tool_id in old and old[tool_id] != kept]
    added = [tool_id for tool_id in new if tool_id not in old]
    rows = Decision.objects.filter(policy_id=policy_id)
    for batch in batches([*gone, *changed], BATCH_ROWS):
        rows.filter(tool_id__in=batch).delete()
    Decision.objects.bulk_create(
        (
            Decision(
                policy_id=policy_id,
                tool_id=tool_id,
                outcome=new[tool_id].outcome,
                reason=new[tool_id].reason,
                chars=new[tool_id].chars,
            )
            for tool_id in (*changed, *added)
        ),
        batch_size=BATCH_ROWS,
    )
    return bool(gone or changed or added)
