"""A change can be taken back where its record holds enough and nothing came after it."""

import pytest

from catalog.access.actors import COMMAND_LINE, Actor
from catalog.access.roles import Role
from catalog.domain.choices import Loading, ReadOnly
from catalog.domain.errors import Conflict, NotAllowed
from catalog.models import Change, Policy, Server, Tool
from catalog.models.changes import Action, Subject
from catalog.services import policies, servers, tool_settings, undo
from tests.harness.rows import make_change, make_server, make_tool

pytestmark = pytest.mark.django_db


def undo_newest() -> None:
    undo.undo_change(change=Change.objects.first() or make_change(), actor=COMMAND_LINE)


def test_servers_settings_come_back_and_the_undo_is_recorded() -> None:
    server = make_server(name="github")
    servers.set_defer_loading(server=server, defer_loading=True, actor=COMMAND_LINE)
    undo_newest()
    servers.set_enabled(server=server, enabled=False, actor=COMMAND_LINE)
    undo_newest()
    servers.set_refresh_interval(server=server, seconds=60, actor=COMMAND_LINE)
    undo_newest()
    row = Server.objects.get(name="github")
    assert (row.defer_loading, row.enabled, row.refresh_interval_seconds) == (None, True, 3600)
    assert Change.objects.count() == 6


def test_what_admins_say_of_the_gateway_comes_back_and_only_they_can_take_it_back() -> None:
    server, tool = make_server(), make_tool()
    servers.set_keeps_no_state(server=server, keeps_no_state=True, actor=COMMAND_LINE)
    assert not undo.can_undo(Change.objects.latest("pk"), Role.EDITOR)
    undo_newest()
    tool_settings.change_tool(tool=tool, actor=COMMAND_LINE, read_only=ReadOnly.YES)
    assert not undo.can_undo(Change.objects.latest("pk"), Role.EDITOR)
    undo_newest()
    assert Server.objects.get(pk=server.pk).keeps_no_state is False
    assert Tool.objects.get(pk=tool.pk).read_only is None


def test_only_admins_say_that_a_server_keeps_no_state_or_a_tool_only_reads() -> None:
    server, tool, editor = make_server(), make_tool(), Actor(label="editor", role=Role.EDITOR)
    with pytest.raises(NotAllowed):
        servers.set_keeps_no_state(server=server, keeps_no_state=True, actor=editor)
    with pytest.raises(NotAllowed):
        tool_settings.change_tool(tool=tool, actor=editor, read_only=ReadOnly.NO)
    assert tool_settings.change_tool(tool=tool, actor=editor, read_only=ReadOnly.INHERIT, hidden=True)
    assert Tool.objects.get(pk=tool.pk).read_only is None


def test_undo_can_be_undone() -> None:
    server = make_server()
    servers.set_defer_loading(server=server, defer_loading=True, actor=COMMAND_LINE)
    undo_newest()
    undo_newest()
    assert Server.objects.get().defer_loading is True


def test_tools_settings_come_back() -> None:
    tool = make_tool(loading=Loading.DEFER, keywords=["ticket"])
    tool_settings.change_tool(
        tool=tool, actor=COMMAND_LINE, loading=Loading.ALWAYS, keywords=["bug"], hidden=True
    )
    undo_newest()
    row = Tool.objects.get()
    assert (row.loading, row.keywords, row.hidden) == ("defer", ["ticket"], False)


def test_tool_that_got_the_name_later_is_left_alone() -> None:
    server = make_server()
    tool = make_tool(server=server, name="x")
    tool_settings.change_tool(tool=tool, actor=COMMAND_LINE, hidden=True)
    tool.delete()
    again = make_tool(server=server, name="x", hidden=True)
    with pytest.raises(Conflict, match="any more"):
        undo_newest()
    assert Tool.objects.get(pk=again.pk).hidden


def test_policy_comes_back() -> None:
    policy = Policy.objects.get(slug="default")
    changed = {"mode": "auto", "threshold": 5, "visible": []}
    policies.change_policy(policy=policy, changed=changed, actor=COMMAND_LINE)
    undo_newest()
    policy.refresh_from_db()
    assert (policy.mode, policy.threshold, policy.visible) == ("always", None, None)


def test_what_changed_since_is_left_alone() -> None:
    server = make_server(name="github")
    servers.set_defer_loading(server=server, defer_loading=True, actor=COMMAND_LINE)
    first = Change.objects.get()
    servers.set_defer_loading(server=server, defer_loading=False, actor=COMMAND_LINE)
    with pytest.raises(Conflict, match="github has changed since"):
        undo.undo_change(change=first, actor=COMMAND_LINE)


def test_later_change_of_a_policy_is_left_alone_and_told() -> None:
    policy = Policy.objects.get(slug="default")
    policies.change_policy(policy=policy, changed={"mode": "auto", "max_results": 7}, actor=COMMAND_LINE)
    first = Change.objects.get()
    policies.change_policy(policy=policy, changed={"mode": "off"}, actor=Actor("ann", Role.EDITOR))
    with pytest.raises(Conflict, match="default has changed since: mode by ann"):
        undo.undo_change(change=first, actor=COMMAND_LINE)
    policy.refresh_from_db()
    assert (policy.mode, policy.max_results, policy.version) == ("off", 7, 3)


def test_change_of_a_policy_is_undone_beside_a_later_one_of_another_field() -> None:
    policy = Policy.objects.get(slug="default")
    policies.change_policy(policy=policy, changed={"mode": "auto"}, actor=COMMAND_LINE)
    first = Change.objects.get()
    policies.change_policy(policy=policy, changed={"max_results": 7}, actor=COMMAND_LINE)
    undo.undo_change(change=first, actor=COMMAND_LINE)
    policy.refresh_from_db()
    assert (policy.mode, policy.max_results) == ("always", 7)


@pytest.mark.parametrize("subject", [Subject.SERVER, Subject.TOOL, Subject.POLICY])
def test_subject_that_is_gone_is_told(subject: Subject) -> None:
    field = {"server": "enabled", "tool": "hidden", "policy": "mode"}[subject]
    change = make_change(subject=subject, name="gone", before={field: True}, after={field: False})
    with pytest.raises(Conflict, match="any more"):
        undo.undo_change(change=change, actor=COMMAND_LINE)


@pytest.mark.parametrize(
    "values",
    [
        {"action": Action.CREATED, "after": {"deferLoading": True}},
        {"action": Action.DELETED, "before": {"deferLoading": True}},
        {"before": {"url": "a"}, "after": {"url": "b"}},
        {"before": {}, "after": {"secrets": "replaced"}},
        {"subject": Subject.KEY, "before": {"revoked": False}, "after": {"revoked": True}},
        {"before": {}, "after": {}},
    ],
)
def test_what_cannot_be_undone_is_refused(values: dict[str, object]) -> None:
    change = make_change(**values)
    assert not undo.can_undo(change)
    with pytest.raises(Conflict, match="cannot be undone"):
        undo.undo_change(change=change, actor=COMMAND_LINE)


def test_viewer_may_not() -> None:
    change = make_change(before={"enabled": True}, after={"enabled": False})
    with pytest.raises(NotAllowed):
        undo.undo_change(change=change, actor=Actor(label="v", role=Role.VIEWER))
