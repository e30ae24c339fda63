"""The programs that a node runs, by role."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from django.conf import settings

from toolsearch_site.cluster.supervisor import Program

PYTHON = sys.executable
CELERY = (PYTHON, "-m", "celery", "--app", "toolsearch_site", "--quiet")
SCHEDULER_COMMAND = (*CELERY, "beat", "--pidfile", "", "--loglevel", "INFO")
FOLLOWER = "follower"
UNDUMPABLE = (PYTHON, str(Path(__file__).with_name("undumpable.py")))  # the other programs call it themselves
WEB_SERVER = (*UNDUMPABLE, "toolsearch_site.edge.granian_server")
GATEWAY_SERVER = (*UNDUMPABLE, "toolsearch_site.edge.gateway_server")
# Of the gateway one: each process has connections of its own to servers, so an agent may meet one as two.
WEB_PROCESSES, GATEWAY_PROCESSES = 2, 1
# Of a web process those that work at once; the others wait for slow clients.
WEB_THREADS, REFRESH_THREADS = 4, 8
GATEWAY_THREADS = 4  # of a gateway process those that ask the database
PLACES_FOR_POLLS = 1  # see `slow_clients.py`
# Of a process with threads: one for each that works, and for what it writes or renews beside them.
CONNECTIONS_BESIDE_THREADS = 2


class NodeRole(StrEnum):
    WEB = "web"
    GATEWAY = "gateway"
    WORKER = "worker"
    SCHEDULER = "scheduler"


SEARCHING_ROLES = frozenset({NodeRole.WEB, NodeRole.GATEWAY})


@dataclass(frozen=True, slots=True)
class Listening:
    """Where the servers of a node listen."""

    host: str
    port: int
    gateway_port: int


def programs_of(
    roles: Sequence[NodeRole], *, listening: Listening, processes: int | None = None
) -> list[Program]:
    """The programs of these roles. A node with an index of its own also runs the index follower."""
    makers: dict[NodeRole, Callable[[], list[Program]]] = {
        NodeRole.WEB: lambda: [_web(listening, processes or WEB_PROCESSES)],
        NodeRole.GATEWAY: lambda: [_gateway(listening, processes or GATEWAY_PROCESSES)],
        NodeRole.WORKER: _workers,
        NodeRole.SCHEDULER: lambda: [Program("scheduler", SCHEDULER_COMMAND)],
    }
    programs = [program for role in roles for program in makers[role]()]
    if settings.NODES_KEEP_OWN_INDEX and (SEARCHING_ROLES | {NodeRole.WORKER}) & set(roles):
        programs.append(_follower(is_searched=is_searched(roles)))
    return programs


def is_searched(roles: Sequence[NodeRole]) -> bool:
    """Whether somebody waits for searches on a node with these roles."""
    return not SEARCHING_ROLES.isdisjoint(roles)


def index_maker() -> Program:
    """A program that brings the node's index up to date and exits, which frees its memory."""
    return Program(FOLLOWER, (*_follow_command(), "--once"))


def _follower(*, is_searched: bool) -> Program:
    """On a node without searches the index serves jobs only and may be some seconds old."""
    command = _follow_command()
    return Program(FOLLOWER, command if is_searched else (*command, "--every", "5"))


def _follow_command() -> tuple[str, ...]:
    return (PYTHON, str(settings.BASE_DIR / "manage.py"), "follow")


def _web(listening: Listening, processes: int) -> Program:
    return Program(
        "web",
        (*WEB_SERVER, *_server_options(listening.host, listening.port, processes)),
        connections=WEB_THREADS + PLACES_FOR_POLLS + CONNECTIONS_BESIDE_THREADS,
    )


def _gateway(listening: Listening, processes: int) -> Program:
    return Program(
        "gateway",
        (*GATEWAY_SERVER, *_server_options(listening.host, listening.gateway_port, processes)),
        connections=GATEWAY_THREADS + CONNECTIONS_BESIDE_THREADS,
    )


def _server_options(host: str, port: int, processes: int) -> tuple[str, ...]:
    return ("--host", host, "--port", str(port), "--processes", str(processes))


def _workers() -> list[Program]:
    """A worker for each queue. Refreshes wait for servers, so they have threads of their own and never delay
    an edit.

    Embedded, the other queue has threads too. Elsewhere it has processes: Celery can kill those that hang.
    """
    pool = "threads" if settings.EMBEDDED else "prefork"
    worker = _worker(queue="celery", pool=pool, size=4 if settings.EMBEDDED else 2)
    refresher = _worker(queue=settings.REFRESH_QUEUE, pool="threads", size=REFRESH_THREADS)
    return [
        Program("worker", (*CELERY, *worker)),
        Program("refresher", (*CELERY, *refresher), connections=REFRESH_THREADS + CONNECTIONS_BESIDE_THREADS),
    ]


def _worker(*, queue: str, pool: str, size: int) -> tuple[str, ...]:
    name = f"{queue}@{settings.NODE}" if not settings.EMBEDDED else f"{queue}@%h"
    chosen = ("worker", "--queues", queue, "--hostname", name, "--pool", pool, "--concurrency", str(size))
    return (*chosen, "--loglevel", "INFO", "--without-gossip", "--without-mingle", "--without-heartbeat")
