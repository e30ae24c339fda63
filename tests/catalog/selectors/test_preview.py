"""A dry run says what flips, and stores nothing."""

import pytest

from catalog.domain.choices import Loading
from catalog.domain.errors import InvalidInput
from catalog.models import Change, Policy, Tool
from catalog.selectors.decisions import count_behind
from catalog.selectors.preview import Proposal, preview
from catalog.services import decisions
from tests.harness.rows import make_policy, make_server, make_tool

pytestmark = pytest.mark.django_db


@pytest.fixture
def policy() -> Policy:
    """Two servers of two tools each, under a threshold they do not reach."""
    for name in ("github", "slack"):
        server = make_server(name=name)
        for tool in ("read", "write"):
            make_tool(server=server, name=tool, description="x" * 400)
    return make_policy(mode="auto", threshold_unit="chars", threshold=100_000)


def test_lower_threshold_flips_every_tool(policy: Policy) -> None:
    found = preview(policy=policy, proposal=Proposal(policy={"threshold": 1000}))
    assert len(found.dry_run.flips) == 4
    assert [(one.server, one.to_load, one.to_defer) for one in found.dry_run.servers] == [
        ("github", 0, 2),
        ("slack", 0, 2),
    ]
    assert sum(server.tokens for server in found.dry_run.servers) < -400
    assert found.after.over


def test_deferred_server_flips_its_own_tools(policy: Policy) -> None:
    found = preview(policy=policy, proposal=Proposal(servers={"slack": True}))
    assert [flip.name for flip in found.dry_run.flips] == ["mcp__slack__read", "mcp__slack__write"]


def test_tool_setting_flips_one_tool(policy: Policy) -> None:
    found = preview(policy=policy, proposal=Proposal(tools={"mcp__github__read": Loading.DEFER}))
    assert [flip.name for flip in found.dry_run.flips] == ["mcp__github__read"]


def test_readings_are_in_every_unit_against_its_limit(policy: Policy) -> None:
    by_unit = {str(reading.unit): reading for reading in preview(policy=policy, proposal=Proposal()).readings}
    assert by_unit["tools"].value == 4
    assert by_unit["chars"].limit == 100_000
    assert by_unit["chars"].value == sum(Tool.objects.values_list("chars", flat=True))
    assert set(by_unit) == {"chars", "tokens", "tools", "context_percent", "context_used"}


def test_curve_has_a_step_where_the_catalog_stands(policy: Policy) -> None:
    low, high = preview(policy=policy, proposal=Proposal()).curve
    assert (low.deferred, high.deferred) == (4, 0)
    assert high.threshold == sum(Tool.objects.values_list("chars", flat=True))


def test_nothing_is_stored(policy: Policy) -> None:
    decisions.bring_up_to_date()
    before = (Policy.objects.values().get(pk=policy.pk), Change.objects.count(), count_behind())
    preview(policy=policy, proposal=Proposal(policy={"mode": "off"}, servers={"slack": True}))
    assert (
        Policy.objects.values().get(pk=policy.pk),
        Change.objects.count(),
        count_behind(),
    ) == before


@pytest.mark.parametrize(
    "proposal",
    [
        Proposal(policy={"mode": "maybe"}),
        Proposal(servers={"nowhere": True}),
        Proposal(tools={"mcp__nowhere__read": Loading.DEFER}),
    ],
)
def test_mistake_is_named(policy: Policy, proposal: Proposal) -> None:
    with pytest.raises(InvalidInput):
        preview(policy=policy, proposal=proposal)
