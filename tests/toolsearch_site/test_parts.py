"""The programs of a node follow from its roles and from what is shared."""

import pytest
from django.test import override_settings

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
