"""Celery tasks of sessions and the gateway: expiry and pruning."""

from celery import shared_task
from django.utils import timezone

from sessions.services import eviction, gateway_processes, kept_results


@shared_task(name="sessions.expire_sessions", ignore_result=True, time_limit=300)
def expire_sessions() -> None:
    eviction.expire(now=timezone.now())
    eviction.keep_limits()


@shared_task(name="sessions.prune_searches", ignore_result=True, time_limit=300)
def prune_searches() -> None:
    now = timezone.now()
    eviction.prune_searches(now=now)
    eviction.prune_events(now=now)
    eviction.prune_calls(now=now)


@shared_task(name="sessions.forget_gateway_rows", ignore_result=True, time_limit=300)
def forget_gateway_rows() -> None:
    """What gateway processes left behind, and results that were kept for some minutes."""
    now = timezone.now()
    kept_results.forget_expired(now=now)
    gateway_processes.forget_lost(now)
