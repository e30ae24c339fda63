"""The programs a node is made of, by the role it has."""

import signal
import sys
from collections.abc import Callable, Sequence
from enum import StrEnum

from django.conf import settings

from toolsearch_site.supervisor import Part

PYTHON = sys.executable
CELERY = (PYTHON, "-m", "celery", "--app", "toolsearch_site", "--quiet")
SCHEDULER = (*CELERY, "beat", "--pidfile", "", "--loglevel", "INFO")
FOLLOWER = "follower"
GRANIAN = (PYTHON, "-m", "granian", "toolsearch_site.wsgi:application", "--interface", "wsgi", "--no-ws")


class NodeRole(StrEnum):
    WEB = "web"
    WORKER = "worker"
    SCHEDULER = "scheduler"


def parts_of(roles: Sequence[NodeRole], *, host: str, port: int, processes: int = 2) -> list[Part]:
    """What to run for these roles. A node with an index of its own also runs what keeps it up to date."""
    makers: dict[NodeRole, Callable[[], list[Part]]] = {
        NodeRole.WEB: lambda: [_web(host, port, processes)],
        NodeRole.WORKER: _workers,
        NodeRole.SCHEDULER: lambda: [Part("scheduler", SCHEDULER)],
    }
    parts = [part for role in roles for part in makers[role]()]
    if settings.NODES_KEEP_OWN_INDEX and {NodeRole.WEB, NodeRole.WORKER} & set(roles):
        parts.append(_follower(is_searched=NodeRole.WEB in roles))
    return parts


def index_maker() -> Part:
    """Brings a node's index up to date and ends; its memory goes with it."""
    return Part(FOLLOWER, (*_follow_command(), "--once"))


def _follower(*, is_searched: bool) -> Part:
    """Where no agent searches, the index serves jobs only and may be some seconds old."""
    command = _follow_command()
    return Part(FOLLOWER, command if is_searched else (*command, "--every", "5"))


def _follow_command() -> tuple[str, ...]:
    return (PYTHON, str(settings.BASE_DIR / "manage.py"), "follow")


def _web(host: str, port: int, processes: int) -> Part:
    listen = ("--host", host, "--port", str(port))
    size = ("--workers", str(processes), "--blocking-threads", "4")
    # A process of the web server that dies is replaced; SIGTERM lets the server take its own with it.
    return Part("web", (*GRANIAN, *listen, *size, "--respawn-failed-workers"), orphan_signal=signal.SIGTERM)


def _workers() -> list[Part]:
    """Refreshes wait for servers, so they have threads of their own and never hold up an edit.

    On one machine threads do for the rest, too. Elsewhere it has processes: Celery ends those that hang.
    """
    pool = "threads" if settings.EMBEDDED else "prefork"
    return [
        Part("worker", (*CELERY, *_worker(queue="celery", pool=pool, size=4 if settings.EMBEDDED else 2))),
        Part("refresher", (*CELERY, *_worker(queue=settings.REFRESH_QUEUE, pool="threads", size=8))),
    ]


def _worker(*, queue: str, pool: str, size: int) -> tuple[str, ...]:
    name = f"{queue}@{settings.NODE}" if not settings.EMBEDDED else f"{queue}@%h"
    chosen = ("worker", "--queues", queue, "--hostname", name, "--pool", pool, "--concurrency", str(size))
    return (*chosen, "--loglevel", "INFO", "--without-gossip", "--without-mingle", "--without-heartbeat")
