"""Entry point of workers and scheduler: `celery -A toolsearch_site worker`."""

import gc
import os
from typing import Any

from celery import Celery, signals

from toolsearch_site.cluster.parent_death import exit_when_orphaned
from toolsearch_site.cluster.undumpable import make_undumpable
from toolsearch_site.data_folder import read_keys
from toolsearch_site.edge.request_ids import request_id

make_undumpable()

REQUEST_ID_HEADER = "toolsearch_request_id"

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolsearch_site.settings")

app = Celery("toolsearch")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@signals.worker_init.connect
@signals.beat_init.connect
def require_keys(**_: Any) -> None:
    """Ends a worker or scheduler that could open nothing, and must not seal anything."""
    read_keys()


@signals.worker_shutdown.connect
def skip_last_collection(**_: Any) -> None:
    """A last search for garbage would only hold up the end of the worker."""
    gc.freeze()


@signals.worker_process_init.connect
def end_with_worker(**_: Any) -> None:
    """Ends a pool process whose worker was killed: somebody else takes its job."""
    exit_when_orphaned()


@signals.before_task_publish.connect
def send_request_id(headers: dict[str, Any], **_: Any) -> None:
    """Puts the current request id into the task's headers, through any number of nested tasks."""
    if own := request_id.get():
        headers[REQUEST_ID_HEADER] = own


@signals.task_prerun.connect
def take_request_id(task: Any, task_id: str, **_: Any) -> None:
    """Takes the request id from the task's headers, or uses the task's id."""
    sent = getattr(task.request, REQUEST_ID_HEADER, None)
    request_id.set(sent or task_id)
