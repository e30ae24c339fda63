"""The workers' and the scheduler's entry point: `celery -A toolsearch_site worker`."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolsearch_site.settings")

app = Celery("toolsearch")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
