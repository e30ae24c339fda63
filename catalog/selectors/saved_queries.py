"""Saved queries for pages: passing, failing, and changed since the run before."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.db.models import Count, F, Max, OuterRef, Q, QuerySet, Subquery

from catalog.domain.errors import NotFound
from catalog.models import CatalogVersion, Change, Policy, SavedQuery, SavedResult, SavedRun, Server
from catalog.models.changes import Subject
from catalog.selectors.changes import ChangeRow, list_differences

PASS_WITHIN = 5
CHANGE_ROWS = 5


class ResultTrend(StrEnum):
    """How a query's result changed since the run before."""

    BROKE = "broke"
    MENDED = "mended"
    NEW = "new"
    NONE = ""


@dataclass(frozen=True, slots=True)
class ExpectedTool:
    """`place` and `before` count from 1; unset where the tool was not found."""

    name: str
    place: int | None
    before: int | None
    has_moved: bool

    @property
    def is_found(self) -> bool:
        return self.place is not None and self.place <= PASS_WITHIN


@dataclass(frozen=True, slots=True)
class SavedRow:
    """`passed` is None for a query that has not been run yet, and for one that rests."""

    saved: SavedQuery
    passed: bool | None
    expected: list[ExpectedTool]
    trend: ResultTrend
    last_passed_at: datetime | None
    is_resting: bool = False


@dataclass(frozen=True, slots=True)
class SavedSet:
    """The saved queries of one policy, failing ones first, resting ones last. `changes` were made between
    the two runs.
    """

    policy: Policy
    rows: list[SavedRow]
    run: SavedRun | None
    previous: SavedRun | None
    is_stale: bool
    changes: list[ChangeRow]

    @property
    def failing(self) -> int:
        return sum(row.passed is False for row in self.rows)

    @property
    def resting(self) -> int:
        return sum(row.is_resting for row in self.rows)

    @property
    def broke(self) -> int:
        return sum(row.trend is ResultTrend.BROKE for row in self.rows)

    @property
    def mended(self) -> int:
        return sum(row.trend is ResultTrend.MENDED for row in self.rows)

    @property
    def recall_points(self) -> float | None:
        """How far R@5 moved since the run before, in percentage points."""
        if self.run is None or self.previous is None:
            return None
        return round((self.run.recall - self.previous.recall) * 100, 1)


@dataclass(frozen=True, slots=True)
class SetBrief:
    slug: str
    queries: int
    failing: int | None


@dataclass(frozen=True, slots=True)
class SavedCounts:
    queries: int
    failing: int


def are_run(relation: str = "") -> Q:
    """The queries that are run. Those of the demo rest while each of its servers is disabled or gone."""
    return Q(**{f"{relation}demo__in": [False, True] if _is_demo_shown() else [False]})


def _is_demo_shown() -> bool:
    return Server.objects.filter(demo=True, enabled=True).exists()


def stale_policies() -> "QuerySet[Policy]":
    """Policies with saved queries and no run of the current catalog, settings and queries."""
    fresh = SavedRun.objects.filter(
        policy=OuterRef("pk"),
        catalog_version__gte=CatalogVersion.current(),
        policy_version=OuterRef("version"),
    )
    with_runs: QuerySet[Any] = _policies_with_queries().annotate(
        run_count=Subquery(fresh.values("queries")[:1])
    )
    return with_runs.exclude(Q(run_count=F("saved_count")) & Q(run_count__isnull=False))


def _policies_with_queries() -> "QuerySet[Any]":
    """Policies with queries that are run, each with their `saved_count`."""
    counted = Count("saved_queries", filter=are_run("saved_queries__"))
    return Policy.objects.annotate(saved_count=counted).filter(saved_count__gt=0)


def read_set(policy: Policy) -> SavedSet:
    queries = list(SavedQuery.objects.filter(policy=policy).order_by("query"))
    of_demo = [one for one in queries if one.demo]
    resting = of_demo if of_demo and not _is_demo_shown() else []
    saved = [one for one in queries if one not in resting]
    # Of a set that rests as a whole, former runs tell nothing.
    runs = list(policy.saved_runs.order_by("-at", "-pk")[:2]) if saved else []
    run, previous = (*runs, None, None)[:2]
    results = _results_of(runs)
    rows = [_row(one, results.get(run, {}), results.get(previous, {})) for one in saved]
    last_passed = _last_passed([row.saved for row in rows if row.passed is False])
    return SavedSet(
        policy=policy,
        rows=[
            *sorted((_with_time(row, last_passed) for row in rows), key=_failing_first),
            *(replace(_row(one, {}, {}), is_resting=True) for one in resting),
        ],
        run=run,
        previous=previous,
        is_stale=bool(saved) and not _is_present(run, policy, len(saved)),
        changes=_changes_between(previous, run),
    )


def sets_in_brief() -> list[SetBrief]:
    """Every policy that has saved queries; `failing` is None for one that has never run."""
    latest = SavedRun.objects.filter(policy=OuterRef("pk")).order_by("-at", "-pk")
    policies = (
        _policies_with_queries()
        .annotate(failing=Subquery(latest.annotate(rest=F("queries") - F("passed")).values("rest")[:1]))
        .order_by("slug")
        .values_list("slug", "saved_count", "failing")
    )
    return [SetBrief(*row) for row in policies]


def count_saved() -> SavedCounts:
    """Over all policies."""
    sets = sets_in_brief()
    return SavedCounts(sum(one.queries for one in sets), sum(one.failing or 0 for one in sets))


def find_saved(saved_id: int) -> SavedQuery:
    saved = SavedQuery.objects.select_related("policy").filter(pk=saved_id).first()
    if saved is None:
        raise NotFound("There is no such saved query.")
    return saved


def find_saved_as(policy_id: int, query: str) -> SavedQuery | None:
    """The saved query with exactly this text, or None."""
    return SavedQuery.objects.filter(policy=policy_id, query=query.strip()).first()


def latest_result(saved: SavedQuery) -> SavedResult | None:
    return SavedResult.objects.filter(saved_query=saved).order_by("-run__at", "-run").first()


def _results_of(runs: Sequence[SavedRun]) -> dict[SavedRun | None, dict[int, SavedResult]]:
    found: dict[SavedRun | None, dict[int, SavedResult]] = {run: {} for run in runs}
    by_id = {run.pk: run for run in runs}
    for result in SavedResult.objects.filter(run__in=runs):
        found[by_id[result.run_id]][result.saved_query_id] = result
    return found


def _row(
    saved: SavedQuery, results: Mapping[int, SavedResult], results_before: Mapping[int, SavedResult]
) -> SavedRow:
    now, before = results.get(saved.pk), results_before.get(saved.pk)
    places, places_before = now.places if now else {}, before.places if before else {}
    expected = [
        ExpectedTool(
            name=name,
            place=places.get(name),
            before=places_before.get(name),
            has_moved=name in places_before and places.get(name) != places_before[name],
        )
        for name in saved.expected
    ]
    return SavedRow(saved, now.passed if now else None, expected, _trend(now, before, results_before), None)


def _trend(
    now: SavedResult | None, before: SavedResult | None, others_before: Mapping[int, object]
) -> ResultTrend:
    if now is None or not others_before:
        return ResultTrend.NONE
    if before is None:
        return ResultTrend.NEW
    if now.passed == before.passed:
        return ResultTrend.NONE
    return ResultTrend.MENDED if now.passed else ResultTrend.BROKE


def _last_passed(failing: Sequence[SavedQuery]) -> dict[int, datetime]:
    passed = SavedResult.objects.filter(saved_query__in=failing, passed=True)
    return dict(passed.order_by().values_list("saved_query").annotate(at=Max("run__at")))


def _with_time(row: SavedRow, last_passed: Mapping[int, datetime]) -> SavedRow:
    return SavedRow(row.saved, row.passed, row.expected, row.trend, last_passed.get(row.saved.pk))


def _failing_first(row: SavedRow) -> tuple[bool, bool, str]:
    return row.passed is not False, row.passed is not None, row.saved.query


def _is_present(run: SavedRun | None, policy: Policy, queries: int) -> bool:
    if run is None:
        return False
    is_of_catalog = run.catalog_version >= CatalogVersion.current()
    return is_of_catalog and (run.policy_version, run.queries) == (policy.version, queries)


def _changes_between(previous: SavedRun | None, run: SavedRun | None) -> list[ChangeRow]:
    """Changes that may have moved the results, the latest first."""
    if previous is None or run is None:
        return []
    moving = Q(subject__in=[Subject.SERVER, Subject.TOOL]) | Q(subject=Subject.POLICY, name=run.policy.slug)
    between = Change.objects.filter(moving, at__gt=previous.at, at__lte=run.at)
    return [
        ChangeRow(change, list_differences(change.before, change.after)) for change in between[:CHANGE_ROWS]
    ]
