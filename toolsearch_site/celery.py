"""The workers' and the scheduler's entry point: `celery -A toolsearch_site worker`."""

import os
from typing import Any

from celery import Celery, signals

from toolsearch_site.request_ids import request_id
from toolsearch_site.undumpable import make_undumpable

make_undumpable()

REQUEST_ID_HEADER = "toolsearch_request_id"

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolsearch_site.settings")

app = Celery("toolsearch")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@signals.before_task_publish.connect
def send_request_id(headers: dict[str, Any], **_: Any) -> None:
    """A task belongs to the request that woke it, however many tasks are between them."""
    if own := request_id.get():
        headers[REQUEST_ID_HEADER] = own


@signals.task_prerun.connect
def take_request_id(task: Any, task_id: str, **_: Any) -> None:
    """A task that no request woke is known by its own id. The next task on this thread sets its own."""
    sent = getattr(task.request, REQUEST_ID_HEADER, None)
    request_id.set(sent or task_id)
