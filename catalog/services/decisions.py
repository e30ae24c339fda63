"""Keeps every policy's decided list up to date with catalog and policy, incrementally.

Everything is read and decided before a transaction begins. The transaction only checks that nobody else was
faster, and writes prepared rows: SQLite has one writer, and agents wait for it.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from django.db import connection, transaction
from django.db.models import Count, F, Q, Sum
from django.db.models.functions import Coalesce

from catalog.domain import decide as domain
from catalog.domain.choices import Kind, Outcome
from catalog.domain.facts import ToolFacts
from catalog.domain.policy import Policy as DomainPolicy
from catalog.domain.thresholds import Measure, ThresholdTotals, sum_tools
from catalog.models import CatalogVersion, DecidedList, Decision, Job, Policy, Server, Tool
from catalog.models.jobs import JobKind
from catalog.selectors.decisions import count_behind
from catalog.selectors.facts import KnownTool, read_facts, read_policy
from catalog.services import jobs
from catalog.services.batches import batches
from catalog.services.tallies import KeptDecision, Tally

# Past this many changed tools, deciding all of them is quicker than finding each one's old decision.
LARGEST_STEP_TOOLS = 1000
BATCH_ROWS = 500
# Several policies are written in one transaction while there are few rows; of one policy all rows are.
BATCH_POLICIES = 100
# Of a policy that has not been decided yet: agents' lists and searches do without its rows until its list
# says that all are there. Pages, exports and `GET /tools` may show some of them meanwhile.
BATCH_NEW_ROWS = 2000
ATTEMPTS = 5
# The ORM takes several times as long to write a whole list, and agents wait for the writer.
_UPSERT = """
    INSERT INTO catalog_decision (policy_id, tool_id, outcome, reason, chars) VALUES (%s, %s, %s, %s, %s)
    ON CONFLICT (policy_id, tool_id)
    DO UPDATE SET outcome = excluded.outcome, reason = excluded.reason, chars = excluded.chars
"""
_KEPT_COLUMNS = ("tool_id", "tool__server__kind", "chars", "outcome", "reason")
_LIST_FIELDS = [field.name for field in DecidedList._meta.fields if not field.primary_key]


def request_decisions() -> None:
    """Request new decisions after a change. A burst of changes is one job."""
    jobs.request_job(kind=JobKind.DECIDE)


def request_new_lists() -> None:
    """Have lists rebuilt after a change that is in no tool's row, such as a server's description.

    Call inside the transaction of the change: processes rebuild their lists when the version moves.
    """
    CatalogVersion.advance()
    request_decisions()


def keep_decisions(policy: Policy) -> None:
    """Have the decisions of the policy's version before count for this one, which decides the same.

    Call inside the transaction that saves the policy. Where they had not caught up, they do so as always.
    """
    lists = DecidedList.objects.filter(policy=policy, policy_version=policy.version - 1)
    if not lists.update(policy_version=policy.version):
        request_decisions()


def request_all_anew() -> None:
    """Have every policy decide all of its tools again, after a change of what tools count for.

    Call inside the transaction of the change, before it renames or deletes tools: whoever writes decisions
    locks the lists first and then waits for their tools. A single tool's step subtracts what it counted
    before, taken from its server's row, which then says something else. The old decisions count until the new
    ones are written, a whole list at once.
    """
    _lock_lists()
    DecidedList.objects.update(policy_version=0)
    request_decisions()


def take_out_server(server: Server) -> None:
    """Remove the tools of a server that is about to be deleted from every decided list: one read, then one
    statement per list that has some of them.

    Call inside the transaction that deletes it. Lists are right at once; the job checks thresholds again.
    Every list gets a new version, so that nobody writes a plan that still includes the tools. Lists that are
    to be decided as a whole have no sums to subtract from; a partly written first list is deleted and written
    again.
    """
    rows = Decision.objects.filter(tool__server=server)
    sums = (
        rows.order_by("policy_id")
        .values("policy_id")
        .annotate(
            tools=Count("pk"),
            all_chars=Sum("chars"),
            deferred=Count("pk", filter=Q(outcome=Outcome.DEFER)),
            deferred_chars=Coalesce(Sum("chars", filter=Q(outcome=Outcome.DEFER)), 0),
        )
    )
    # Locked before they are summed up: a job that decides meanwhile waits, and then finds another version.
    _lock_lists()
    Decision.objects.filter(policy__decided__version=0, policy__decided__policy_version=0).delete()
    DecidedList.objects.update(version=F("version") + 1)
    for found in sums:
        counted = 0 if server.kind == Kind.BUILTIN else found["all_chars"]
        DecidedList.objects.filter(policy_id=found["policy_id"], policy_version__gt=0).update(
            tools=F("tools") - found["tools"],
            chars=F("chars") - counted,
            all_chars=F("all_chars") - found["all_chars"],
            deferred=F("deferred") - found["deferred"],
            deferred_chars=F("deferred_chars") - found["deferred_chars"],
        )


def _lock_lists() -> None:
    """Lock every list until the transaction ends, in the order that everybody uses."""
    list(DecidedList.objects.select_for_update().order_by("policy_id").values_list("pk"))


def request_if_behind() -> None:
    if count_behind():
        jobs.ensure_job(kind=JobKind.DECIDE)


def run_decisions(job: Job) -> None:
    bring_up_to_date()


def bring_up_to_date() -> None:
    """Decide what changed; each policy's list changes in one transaction."""
    policy_ids = list(Policy.objects.order_by("pk").values_list("pk", flat=True))
    _create_missing(policy_ids)
    for batch in batches(policy_ids, BATCH_POLICIES):
        left: Sequence[int] = batch
        for _ in range(ATTEMPTS):
            left = _follow(left)
            if not left:
                break


@dataclass(frozen=True, slots=True)
class _Basis:
    """The state of a decided list when it was read. If it differs by now, somebody else has decided."""

    version: int
    catalog_version: int
    policy_version: int

    @classmethod
    def of(cls, decided: DecidedList) -> "_Basis":
        return cls(decided.version, decided.catalog_version, decided.policy_version)


class _Row(NamedTuple):
    """A decision to be stored."""

    policy_id: int
    tool_id: int
    outcome: str
    reason: str
    chars: int


@dataclass(frozen=True, slots=True)
class _Step:
    """The changes to a policy's decided list: `gone` are tool ids to remove, `rows` replace existing ones."""

    decided: DecidedList
    basis: _Basis
    gone: tuple[int, ...] = ()
    rows: tuple[_Row, ...] = ()

    @property
    def is_first(self) -> bool:
        """Whether the policy had no complete list before. One that is decided again has a version."""
        return self.basis.version == 0 and self.basis.policy_version == 0

    @property
    def size(self) -> int:
        return len(self.gone) + len(self.rows)


class _Catalog:
    """The inputs of decisions, read once for many policies.

    The version is read before the tools: a concurrent change is then decided twice, and never missed.
    """

    def __init__(self) -> None:
        self.version = CatalogVersion.current()
        self._touched: dict[int, list[int] | None] = {}
        self._facts: dict[int, list[KnownTool]] = {}

    def touched_since(self, version: int) -> list[int] | None:
        """Ids of the tools changed since then; None where there are too many."""
        if version not in self._touched:
            newer = Tool.objects.filter(facts_version__gt=version).values_list("pk", flat=True)
            ids = list(newer[: LARGEST_STEP_TOOLS + 1])
            self._touched[version] = ids if len(ids) <= LARGEST_STEP_TOOLS else None
        return self._touched[version]

    def facts_since(self, version: int) -> list[KnownTool]:
        """Facts of the listed tools changed since then."""
        if version not in self._facts:
            touched = self.touched_since(version) or ()
            self._facts[version] = list(read_facts(Tool.objects.filter(pk__in=touched).listed()))
        return self._facts[version]

    @cached_property
    def all_facts(self) -> list[KnownTool]:
        return list(read_facts(Tool.objects.listed()))


def _create_missing(policy_ids: Sequence[int]) -> None:
    known = set(DecidedList.objects.values_list("policy_id", flat=True))
    missing = [DecidedList(policy_id=policy_id) for policy_id in policy_ids if policy_id not in known]
    if missing:
        DecidedList.objects.bulk_create(missing, ignore_conflicts=True)


def _follow(policy_ids: Sequence[int]) -> list[int]:
    """Bring these policies up to date. Returns those that somebody else has changed meanwhile."""
    left: list[int] = []
    waiting: list[_Step] = []
    for step in _plan(policy_ids):
        if waiting and sum(one.size for one in waiting) + step.size > BATCH_ROWS:
            left += _write(waiting)
            waiting = []
        waiting.append(_write_ahead(step) if step.is_first else step)
    return left + _write(waiting) if waiting else left


def _plan(policy_ids: Sequence[int]) -> Iterator[_Step]:
    """Yields one step at a time, because a whole list is long."""
    catalog = _Catalog()
    policies = Policy.objects.in_bulk(list(policy_ids))
    lists = [
        decided
        for decided in DecidedList.objects.filter(policy_id__in=policies).order_by("policy_id")
        if _Basis.of(decided) != _Basis(decided.version, catalog.version, policies[decided.policy_id].version)
    ]
    known = _read_touched(lists, catalog)
    for decided in lists:
        row = policies[decided.policy_id]
        policy = read_policy(row)
        is_step = decided.policy_version == row.version and (
            catalog.touched_since(decided.catalog_version) is not None
        )
        old = known.get(decided.policy_id, {})
        step = _decide_touched(decided, policy, old, catalog) if is_step else None
        if step is None:
            step = _decide_all(decided, policy, catalog)
        decided.catalog_version, decided.policy_version = catalog.version, row.version
        yield step


def _read_touched(lists: Sequence[DecidedList], catalog: _Catalog) -> dict[int, dict[int, KeptDecision]]:
    """Stored decisions of the changed tools, by policy: one query for all of one version."""
    at_version: dict[int, list[int]] = defaultdict(list)
    for decided in lists:
        at_version[decided.catalog_version].append(decided.policy_id)
    found: dict[int, dict[int, KeptDecision]] = defaultdict(dict)
    for version, policy_ids in at_version.items():
        touched = catalog.touched_since(version)
        if touched:
            rows = Decision.objects.filter(policy_id__in=policy_ids, tool_id__in=touched)
            for policy_id, tool_id, *kept in rows.values_list("policy_id", *_KEPT_COLUMNS):
                found[policy_id][tool_id] = KeptDecision(*kept)
    return found


def _decide_touched(
    decided: DecidedList, policy: DomainPolicy, old: Mapping[int, KeptDecision], catalog: _Catalog
) -> _Step | None:
    """None, with nothing changed, where the threshold flips: then all tools must be decided."""
    new = _show(policy, catalog.facts_since(decided.catalog_version))
    tally = Tally.of(decided).take(old.values())
    reading = domain.measure_safely(policy, _with_tools(tally.totals, new.values()))
    if reading.over != decided.over:
        return None
    return _make_step(decided, policy, reading, old=old, new=new, tally=tally)


def _decide_all(decided: DecidedList, policy: DomainPolicy, catalog: _Catalog) -> _Step:
    rows = Decision.objects.filter(policy_id=decided.policy_id).values_list(*_KEPT_COLUMNS)
    old = {tool_id: KeptDecision(*kept) for tool_id, *kept in rows}
    new = _show(policy, catalog.all_facts)
    reading = domain.measure_safely(policy, _with_tools(Tally().totals, new.values()))
    return _make_step(decided, policy, reading, old=old, new=new, tally=Tally())


def _make_step(
    decided: DecidedList,
    policy: DomainPolicy,
    reading: Measure,
    *,
    old: Mapping[int, KeptDecision],
    new: Mapping[int, ToolFacts],
    tally: Tally,
) -> _Step:
    """Writes the result to `decided`, unsaved. `tally` excludes the tools in `new`."""
    basis, situation = _Basis.of(decided), domain.prepare_rules(policy, reading)
    wanted = {
        tool_id: KeptDecision(facts.kind, facts.chars or 0, decision.outcome, decision.reason)
        for tool_id, facts in new.items()
        for decision in (domain.decide_one(facts, situation),)
    }
    gone = tuple(tool_id for tool_id in old if tool_id not in wanted)
    rows = tuple(
        _Row(decided.policy_id, tool_id, str(kept.outcome), str(kept.reason), kept.chars)
        for tool_id, kept in wanted.items()
        if old.get(tool_id) != kept
    )
    if gone or rows or reading.over != decided.over:
        decided.version += 1
    decided.over = reading.over
    tally.add(wanted.values()).write(decided)
    return _Step(decided, basis, gone, rows)


def _show(policy: DomainPolicy, tools: Sequence[KnownTool]) -> dict[int, ToolFacts]:
    ids = {known.facts.name: known.id for known in tools}
    shown = domain.visible_tools((known.facts for known in tools), policy)
    return {ids[facts.name]: facts for facts in shown}


def _with_tools(totals: ThresholdTotals, tools: Iterable[ToolFacts]) -> ThresholdTotals:
    more = sum_tools(tools)
    return ThresholdTotals(
        totals.tools + more.tools, totals.chars + more.chars, totals.unmeasured + more.unmeasured
    )


def _write_ahead(step: _Step) -> _Step:
    """Store the rows of a policy's first list in batches; the list's row then makes them count. Both are
    refused where somebody else was faster or a server was deleted meanwhile.
    """
    for batch in batches(step.rows, BATCH_NEW_ROWS):
        with transaction.atomic():
            if _read_bases([step]).get(step.decided.policy_id) == step.basis:
                _write_rows(batch)
    return replace(step, rows=())


@transaction.atomic
def _write(steps: Sequence[_Step]) -> list[int]:
    """Write what differs. Policies whose list has changed since it was read are returned, unwritten."""
    now = _read_bases(steps)
    sound = [step for step in steps if now.get(step.decided.policy_id) == step.basis]
    _delete_gone(sound)
    _write_rows([row for step in sound for row in step.rows])
    _write_lists(sound)
    written = {step.decided.policy_id for step in sound}
    return [policy_id for policy_id in now if policy_id not in written]


def _read_bases(steps: Sequence[_Step]) -> dict[int, _Basis]:
    """Locked until the transaction ends."""
    lists = DecidedList.objects.select_for_update().order_by("policy_id")
    return {row.policy_id: _Basis.of(row) for row in lists.filter(pk__in=[one.decided.pk for one in steps])}


def _write_rows(rows: Sequence[_Row]) -> None:
    if rows:
        with connection.cursor() as cursor:
            cursor.executemany(_UPSERT, rows)


def _write_lists(steps: Iterable[_Step]) -> None:
    """Lists without a changed decision only get new versions, all in one statement."""
    moved: dict[tuple[int, int], list[int]] = defaultdict(list)
    for step in steps:
        decided = step.decided
        if step.basis.version == decided.version and step.basis.policy_version == decided.policy_version:
            moved[decided.catalog_version, decided.policy_version].append(decided.policy_id)
        else:
            decided.save(update_fields=_LIST_FIELDS)
    for (catalog_version, policy_version), policy_ids in moved.items():
        lists = DecidedList.objects.filter(policy_id__in=policy_ids)
        lists.update(catalog_version=catalog_version, policy_version=policy_version)


def _delete_gone(steps: Iterable[_Step]) -> None:
    """An edit mostly removes the same tools from every list: then it is one statement."""
    policies: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for step in steps:
        policies[step.gone].append(step.decided.policy_id)
    for gone, policy_ids in policies.items():
        for batch in batches(gone, BATCH_ROWS):
            Decision.objects.filter(policy_id__in=policy_ids, tool_id__in=batch).delete()
