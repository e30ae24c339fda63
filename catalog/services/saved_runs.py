"""Runs a policy's saved queries as its agents search, and stores the results."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from catalog.models import DecidedList, Job, Policy, SavedQuery, SavedResult, SavedRun, Tool
from catalog.models.jobs import JobKind
from catalog.search import evaluation
from catalog.search.evaluation import Quality
from catalog.search.request import Visible
from catalog.selectors import search
from catalog.selectors.decisions import count_behind
from catalog.selectors.saved_queries import PASS_WITHIN, are_run, stale_policies
from catalog.services import jobs, reindex

LOOKED_AT = 50  # ranks past the first five are shown, not counted
KEPT_RUNS = 50


@dataclass(frozen=True, slots=True)
class _Judged:
    saved: SavedQuery
    places: dict[str, int | None]
    quality: Quality

    @property
    def recall(self) -> float:
        return self.quality.recall_at(PASS_WITHIN)

    @property
    def passed(self) -> bool:
        """Whether every expected tool is among the first five."""
        return self.recall == 1


def request_if_behind() -> None:
    """Request a run where catalog or policy changed since the last one, once index and decisions have
    followed.
    """
    if stale_policies().exists() and not count_behind() and not reindex.is_behind():
        jobs.ensure_job(kind=JobKind.RUN_SAVED_QUERIES)


def run_stale(job: Job) -> None:
    for policy in stale_policies():
        run_policy(policy)


def run_policy(policy: Policy) -> SavedRun | None:
    """Run a policy's saved queries now. None while nothing has been decided for it, or nothing is saved."""
    policy = Policy.objects.get(pk=policy.pk)
    # Read before the search: what moves meanwhile leaves the run stale, and it is made again.
    decided = DecidedList.objects.filter(policy=policy, policy_version__gt=0).first()
    saved = list(policy.saved_queries.filter(are_run()))
    if decided is None or not saved:
        return None
    shown, ids = search.read_shown(policy), _read_ids(saved)
    return _keep(policy, decided, [_judge(policy, one, ids, shown) for one in saved])


def _read_ids(saved: Sequence[SavedQuery]) -> dict[str, int]:
    names = {name for one in saved for name in one.expected}
    return dict(Tool.objects.filter(qualified_name__in=names).values_list("qualified_name", "pk"))


def _judge(policy: Policy, saved: SavedQuery, ids: dict[str, int], shown: Visible) -> _Judged:
    outcome = search.search_policy(policy=policy, query=saved.query, limit=LOOKED_AT, shown=shown)
    ranked = [hit.id for hit in outcome.hits]
    places = {tool_id: place for place, tool_id in enumerate(ranked, start=1)}
    groups = tuple(frozenset({ids[name]} if name in ids else ()) for name in saved.expected)
    return _Judged(
        saved,
        {name: places.get(ids[name]) if name in ids else None for name in saved.expected},
        evaluation.score_ranking(ranked, groups),
    )


@transaction.atomic
def _keep(policy: Policy, decided: DecidedList, judged: Sequence[_Judged]) -> SavedRun:
    run, _ = SavedRun.objects.update_or_create(
        policy=policy,
        catalog_version=decided.catalog_version,
        policy_version=min(decided.policy_version, policy.version),
        defaults={
            "at": timezone.now(),
            "queries": len(judged),
            "passed": sum(one.passed for one in judged),
            "recall": evaluation.mean([one.quality for one in judged]).recall_at(PASS_WITHIN),
        },
    )
    run.results.all().delete()
    # One that was deleted since it was read takes no result; none can go before the results are in.
    living = set(SavedQuery.objects.select_for_update().filter(policy=policy).values_list("pk", flat=True))
    SavedResult.objects.bulk_create(
        SavedResult(run=run, saved_query=one.saved, places=one.places, passed=one.passed, recall=one.recall)
        for one in judged
        if one.saved.pk in living
    )
    old = SavedRun.objects.filter(policy=policy).order_by("-at", "-pk").values_list("pk", flat=True)
    SavedRun.objects.filter(pk__in=list(old[KEPT_RUNS:])).delete()
    return run
