"""Scheduled tasks of the site itself."""

from datetime import timedelta

import pytest
from django.conf import settings
from django.contrib.sessions.models import Session
from django.utils import timezone

from toolsearch_site import celery_app, tasks


@pytest.mark.django_db
def test_rows_of_sign_ins_that_ended_go() -> None:
    for key, hours in (("old", -1), ("new", 1)):
        expires = timezone.now() + timedelta(hours=hours)
        Session.objects.create(session_key=key, session_data="", expire_date=expires)
    tasks.clear_expired_sign_ins()
    assert list(Session.objects.values_list("session_key", flat=True)) == ["new"]


def test_every_scheduled_task_is_known_to_the_workers() -> None:
    celery_app.loader.import_default_modules()
    scheduled = {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}
    assert "toolsearch_site.clear_expired_sign_ins" in scheduled
    assert scheduled <= set(celery_app.tasks)
