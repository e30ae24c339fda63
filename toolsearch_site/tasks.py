"""Celery tasks of the site itself."""

from celery import shared_task
from django.contrib.sessions.models import Session
from django.utils import timezone

BATCH_ROWS = 500


@shared_task(name="toolsearch_site.clear_expired_sign_ins", ignore_result=True, time_limit=600)
def clear_expired_sign_ins() -> None:
    """Delete expired Django sessions, which nothing else removes."""
    expired = Session.objects.filter(expire_date__lt=timezone.now())
    while keys := list(expired.values_list("pk", flat=True)[:BATCH_ROWS]):
        Session.objects.filter(pk__in=keys).delete()
