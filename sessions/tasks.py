"""Celery tasks of sessions: expiry and pruning."""

from celery import shared_task
from django.utils import timezone

from sessions.services import eviction


@shared_task(name="sessions.expire_sessions", ignore_result=True, time_limit=300)
def expire_sessions() -> None:
    eviction.expire(now=timezone.now())
    eviction.keep_limits()


@shared_task(name="sessions.prune_searches", ignore_result=True, time_limit=300)
def prune_searches() -> None:
    now = timezone.now()
    eviction.prune_searches(now=now)
    eviction.prune_events(now=now)
