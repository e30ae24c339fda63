"""Undoes changes. An undo is recorded as a change, and can be undone itself."""

from collections.abc import Callable, Mapping

from catalog.access import actors
from catalog.access.roles import Role
from catalog.domain.choices import Kind, Loading, ReadOnly
from catalog.domain.errors import Conflict, InvalidInput
from catalog.models import Change, Policy, Server
from catalog.models.changes import Action, Subject
from catalog.selectors.facts import read_policy
from catalog.services import (
    approval_records,
    approvals,
    bulk,
    changes,
    demo,
    model_support,
    policies,
    saved_queries,
    servers,
    tool_settings,
)
from catalog.services.catalog_lock import lock_catalog
from catalog.services.tool_settings import READ_ONLY

# Fields of policies, tools and servers that only an admin may change.
_FOR_ADMINS = frozenset({*policies.FOR_ADMINS, READ_ONLY, "keepsNoState"})
Undo = Callable[[Change, actors.Actor], str]


def can_undo(change: Change, role: Role = Role.ADMIN) -> bool:
    """Whether the record holds enough for an undo, and the role is sufficient.

    Changes of settings can be undone; creations, deletions and secrets cannot, except of models and deleted
    queries.
    """
    return role >= _least_role(change) and _find_undo(change) is not None


@lock_catalog()
def undo_change(*, change: Change, actor: actors.Actor) -> str:
    """Returns the name of what was restored. Raises Conflict where the change cannot be undone, or its
    subject has changed since.

    A change of many tools is undone on those that have not changed since, if there is one: the name then says
    how many.
    """
    actors.require(actor, Role.EDITOR)
    undo = _find_undo(change)
    if undo is None:
        raise Conflict("this change cannot be undone")
    return undo(change, actor)


def _least_role(change: Change) -> Role:
    """The role that the original change required."""
    is_admins = change.subject == Subject.MODEL or approval_records.is_approval(change)
    return Role.EDITOR if not is_admins and _FOR_ADMINS.isdisjoint(change.before) else Role.ADMIN


def _find_undo(change: Change) -> Undo | None:
    if change.subject == Subject.MODEL:
        return _undo_model
    if change.subject == Subject.QUERY and change.action == Action.DELETED:
        return _undo_saved_query
    if demo.is_of_demo(change):
        return _undo_demo
    return _find_undo_of_settings(change)


def _find_undo_of_settings(change: Change) -> Undo | None:
    fields = frozenset({*change.before, *change.after})
    if change.action != Action.CHANGED or not fields or set(change.before) != set(change.after):
        return None
    if change.subject == Subject.POLICY:
        return _undo_policy
    if approval_records.is_approval(change):
        return _undo_approval
    if bulk.is_bulk(change):
        return _undo_bulk
    for subject, known, undo in _UNDOS:
        if change.subject == subject and fields <= known:
            return undo
    return None


def _undo_server(change: Change, actor: actors.Actor) -> str:
    server = Server.objects.filter(name=change.name).first()
    if server is None:
        raise Conflict(f"there is no server {change.name} any more")
    present = {
        "deferLoading": server.defer_loading,
        "enabled": server.enabled,
        "kind": str(server.kind),
        "description": server.description,
        "refreshIntervalSeconds": server.refresh_interval_seconds,
        "keepsNoState": server.keeps_no_state,
    }
    _require_unchanged(change, present)
    before = change.before
    if "deferLoading" in before:
        servers.set_defer_loading(server=server, defer_loading=before["deferLoading"], actor=actor)
    if "enabled" in before:
        servers.set_enabled(server=server, enabled=before["enabled"], actor=actor)
    if "kind" in before:
        servers.set_kind(server=server, kind=Kind(before["kind"]), actor=actor)
    if "description" in before:
        servers.set_description(server=server, description=before["description"], actor=actor)
    if "refreshIntervalSeconds" in before:
        servers.set_refresh_interval(server=server, seconds=before["refreshIntervalSeconds"], actor=actor)
    if "keepsNoState" in before:
        servers.set_keeps_no_state(server=server, keeps_no_state=before["keepsNoState"], actor=actor)
    return change.name


def _undo_tool(change: Change, actor: actors.Actor) -> str:
    tool = changes.find_changed_tool(change)
    if tool is None:
        raise Conflict(f"{change.name} is not the tool any more that was changed")
    _require_unchanged(change, tool_settings.settings_of(tool))
    before = change.before
    tool_settings.change_tool(
        tool=tool,
        actor=actor,
        loading=Loading(before["loading"]) if "loading" in before else None,
        keywords=before.get("keywords"),
        hidden=before.get("hidden"),
        tags=before.get("tags"),
        read_only=ReadOnly.of(before[READ_ONLY]) if READ_ONLY in before else None,
    )
    return change.name


def _undo_bulk(change: Change, actor: actors.Actor) -> str:
    restored = bulk.restore_tools(change=change, actor=actor)
    if restored is None:
        raise Conflict("every one of these tools has changed since")
    return restored.name


def _undo_demo(change: Change, actor: actors.Actor) -> str:
    restored = demo.restore_demo(change=change, actor=actor)
    if restored is None:
        raise Conflict("every one of these servers has changed since")
    return restored.name


def _undo_approval(change: Change, actor: actors.Actor) -> str:
    restored = approvals.restore_approvals(change=change, actor=actor)
    if restored is None:
        raise Conflict("every one of these tools has changed since")
    return restored.name


def _undo_model(change: Change, actor: actors.Actor) -> str:
    model_support.restore_model(change=change, actor=actor)
    return change.name


def _undo_policy(change: Change, actor: actors.Actor) -> str:
    policy = Policy.objects.filter(slug=change.name).first()
    if policy is None:
        raise Conflict(f"there is no policy {change.name} any more")
    _require_unchanged(change, read_policy(policy).to_mapping())
    policies.change_policy(policy=policy, changed=change.before, actor=actor)
    return change.name


def _undo_saved_query(change: Change, actor: actors.Actor) -> str:
    try:
        saved_queries.restore_query(change=change, actor=actor)
    except InvalidInput as invalid:
        raise Conflict(str(invalid)) from None
    return change.name


def _require_unchanged(change: Change, present: Mapping[str, object]) -> None:
    differing = [field for field, value in change.after.items() if present.get(field) != value]
    if differing:
        raise Conflict(f"{change.name} has changed since: {changes.later_changes(change, differing)}")


_UNDOS: tuple[tuple[Subject, frozenset[str], Undo], ...] = (
    (
        Subject.SERVER,
        frozenset(
            {"deferLoading", "enabled", "kind", "description", "refreshIntervalSeconds", "keepsNoState"}
        ),
        _undo_server,
    ),
    (Subject.TOOL, frozenset({"loading", "keywords", "hidden", "tags", READ_ONLY}), _undo_tool),
)
