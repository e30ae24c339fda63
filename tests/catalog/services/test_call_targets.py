"""What may be called is read from the database at each call, and nothing of it is remembered."""

from typing import Any

import pytest
from django.utils import timezone

from catalog.domain.choices import Approval, Quarantine, Transport
from catalog.domain.policy import Policy
from catalog.models import Server, Tool
from catalog.services.call_targets import CallTarget, read_target
from tests.harness.rows import make_server, make_tool

pytestmark = pytest.mark.django_db
URL = "https://one.example.com/mcp"


def make_callable(**values: Any) -> Tool:
    return make_tool(server=make_server(transport=Transport.HTTP, url=URL), **values)


def target_of(tool: Tool, quarantine: Quarantine = Quarantine.OFF) -> CallTarget | None:
    return read_target(tool.pk, Policy(slug="any", quarantine=quarantine))


def test_tool_goes_by_its_own_name_to_its_own_server() -> None:
    tools = [make_callable(name="first"), make_callable(name="second")]
    for tool in (*tools, *tools):
        target = target_of(tool)
        assert target is not None
        assert target.tool == tool.name
        assert (target.upstream.server_id, target.upstream.name) == (tool.server_id, tool.server.name)
        assert target.upstream.connection.url == URL


@pytest.mark.parametrize(
    "change",
    [
        lambda tool: Tool.objects.filter(pk=tool.pk).update(hidden=True),
        lambda tool: Tool.objects.filter(pk=tool.pk).update(gone_at=timezone.now()),
        lambda tool: Server.objects.filter(pk=tool.server_id).update(enabled=False),
        lambda tool: Server.objects.filter(pk=tool.server_id).update(transport=Transport.SNAPSHOT, url=""),
        lambda tool: Tool.objects.filter(pk=tool.pk).delete(),
    ],
    ids=["hidden", "gone", "disabled", "snapshot", "deleted"],
)
def test_what_was_taken_away_is_not_found_any_more(change: Any) -> None:
    tool = make_callable()
    assert target_of(tool) is not None
    change(tool)
    assert target_of(tool) is None


def test_locked_tool_is_found_only_without_quarantine() -> None:
    tool = make_callable()
    Tool.objects.filter(pk=tool.pk).update(approval=Approval.CHANGED)
    assert target_of(tool, Quarantine.CHANGED) is None
    assert target_of(tool) is not None


def test_new_address_is_another_credential() -> None:
    tool = make_callable()
    before = target_of(tool)
    Server.objects.filter(pk=tool.server_id).update(url="https://two.example.com/mcp", keeps_no_state=True)
    after = target_of(tool)
    assert before is not None
    assert after is not None
    assert after.upstream.connection.url == "https://two.example.com/mcp"
    assert after.upstream.credential != before.upstream.credential
    assert (before.upstream.keeps_no_state, after.upstream.keeps_no_state) == (False, True)


@pytest.mark.parametrize(
    ("mark", "hint", "is_read_only"),
    [(None, True, True), (None, False, False), (True, False, True), (False, True, False)],
)
def test_admins_mark_goes_before_the_definition(mark: bool | None, hint: bool, is_read_only: bool) -> None:
    tool = make_callable()
    Tool.objects.filter(pk=tool.pk).update(read_only=mark, annotations={"readOnlyHint": hint})
    target = target_of(tool)
    assert target is not None
    assert target.is_read_only is is_read_only
