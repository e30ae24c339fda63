"""The programs of a node follow from its roles and from what is shared."""

import pytest
from django.test import override_settings

from catalog.services import refresh
from toolsearch_site import parts
from toolsearch_site.parts import NodeRole, parts_of


def labels(*roles: NodeRole) -> list[str]:
    return [part.label for part in parts_of(roles, host="127.0.0.1", port=8000)]


@override_settings(NODES_KEEP_OWN_INDEX=False, EMBEDDED=True)
def test_one_machine_has_every_part_and_no_follower() -> None:
    assert labels(*NodeRole) == ["web", "worker", "refresher", "scheduler"]


@override_settings(NODES_KEEP_OWN_INDEX=True, EMBEDDED=False)
@pytest.mark.parametrize(
    ("role", "expected"),
    [
        (NodeRole.WEB, ["web", "follower"]),
        (NodeRole.WORKER, ["worker", "refresher", "follower"]),
        (NodeRole.SCHEDULER, ["scheduler"]),
    ],
)
def test_node_of_several_keeps_its_own_index_where_something_searches(
    role: NodeRole, expected: list[str]
) -> None:
    assert labels(role) == expected


@override_settings(NODES_KEEP_OWN_INDEX=True, EMBEDDED=False, NODE="worker-1")
def test_time_limits_hold_where_celery_can_end_a_task() -> None:
    """Threads cannot be ended; refreshes, which have limits of their own, may run in them."""
    [worker, refresher, follower] = parts_of([NodeRole.WORKER], host="127.0.0.1", port=8000)
    assert "prefork" in worker.argv
    assert "celery@worker-1" in worker.argv
    assert "threads" in refresher.argv
    assert "--every" in follower.argv


@override_settings(NODES_KEEP_OWN_INDEX=True, EMBEDDED=False)
def test_each_thread_that_asks_the_database_has_a_connection() -> None:
    found = {part.label: part.connections for part in parts_of(tuple(NodeRole), host="127.0.0.1", port=8000)}
    assert found == {"web": 7, "worker": 2, "refresher": 10, "scheduler": 2, "follower": 2}


@override_settings(NODES_KEEP_OWN_INDEX=True, EMBEDDED=False)
def test_two_nodes_of_each_kind_fit_into_what_postgresql_allows_by_itself() -> None:
    """Its default is a hundred, three of them for its superuser. A web server has two processes that ask, a
    worker three, and a node's supervisor asks now and then.
    """
    processes = {"web": 2, "worker": 3}
    needed = sum(
        part.connections * processes.get(part.label, 1)
        for role in NodeRole
        for part in parts_of([role], host="127.0.0.1", port=8000)
    )
    assert 2 * (needed + len(NodeRole)) < 97


def test_threads_are_left_for_servers_that_answer() -> None:
    assert refresh.MOST_TIMED_OUT_AT_ONCE <= parts.REFRESH_THREADS / 2
    assert refresh.MOST_UNREACHED_AT_ONCE < parts.REFRESH_THREADS
