"""Tests that share an expensive fixture run on one pytest worker."""

import pytest

from tests.conftest import turn_of

GROUP = "tests that stay together"


@pytest.mark.xdist_group(GROUP)
def test_groups_reach_the_workers(request: pytest.FixtureRequest) -> None:
    """pytest-xdist hands its groups on in the names of tests: without them every worker starts everything."""
    if not hasattr(request.config, "workerinput"):
        assert "@" not in request.node.nodeid
        return
    assert request.node.nodeid.endswith(f"@{GROUP}")


def test_long_groups_begin_first(request: pytest.FixtureRequest) -> None:
    """Whatever a plugin sorts by, the order of the whole run is ours."""
    turns = [turn_of(item) for item in request.session.items]
    assert turns == sorted(turns)
