"""Takes a change back. That is a change too: it is recorded, and can be taken back in its turn."""

from collections.abc import Callable, Mapping

from catalog.access import Role
from catalog.domain.choices import Loading
from catalog.domain.errors import Conflict
from catalog.models import Change, Policy, Server, Tool
from catalog.models.changes import Action, Subject
from catalog.services import bulk, changes, policies, server_settings, servers, tool_settings

Undo = Callable[[Change, changes.Actor], None]


def can_undo(change: Change) -> bool:
    """Whether the record holds enough: changes of settings do, creations, deletions and secrets do not."""
    return _find_undo(change) is not None


def undo_change(*, change: Change, actor: changes.Actor) -> None:
    """Raises Conflict where the change cannot be taken back, or its subject has changed since."""
    changes.require(actor, Role.EDITOR)
    undo = _find_undo(change)
    if undo is None:
        raise Conflict("this change cannot be undone")
    undo(change, actor)


def _find_undo(change: Change) -> Undo | None:
    fields = frozenset({*change.before, *change.after})
    if change.action != Action.CHANGED or not fields or set(change.before) != set(change.after):
        return None
    if change.subject == Subject.POLICY:
        return _undo_policy
    if bulk.is_bulk(change):
        return _undo_bulk
    for subject, known, undo in _UNDOS:
        if change.subject == subject and fields <= known:
            return undo
    return None


def _undo_server(change: Change, actor: changes.Actor) -> None:
    server = Server.objects.filter(name=change.name).first()
    if server is None:
        raise Conflict(f"there is no server {change.name} any more")
    present = {
        "deferLoading": server.defer_loading,
        "enabled": server.enabled,
        "refreshIntervalSeconds": server.refresh_interval_seconds,
    }
    _require_unchanged(change, present)
    before = change.before
    if "deferLoading" in before:
        servers.set_defer_loading(server=server, defer_loading=before["deferLoading"], actor=actor)
    if "enabled" in before:
        server_settings.set_enabled(server=server, enabled=before["enabled"], actor=actor)
    if "refreshIntervalSeconds" in before:
        servers.set_refresh_interval(server=server, seconds=before["refreshIntervalSeconds"], actor=actor)


def _undo_tool(change: Change, actor: changes.Actor) -> None:
    tool = Tool.objects.filter(qualified_name=change.name).first()
    if tool is None:
        raise Conflict(f"there is no tool {change.name} any more")
    _require_unchanged(
        change, {"loading": str(tool.loading), "keywords": tool.keywords, "hidden": tool.hidden}
    )
    before = change.before
    tool_settings.change_tool(
        tool=tool,
        actor=actor,
        loading=Loading(before["loading"]) if "loading" in before else None,
        keywords=before.get("keywords"),
        hidden=before.get("hidden"),
    )


def _undo_bulk(change: Change, actor: changes.Actor) -> None:
    if bulk.restore_tools(change=change, actor=actor) is None:
        raise Conflict("every one of these tools has changed since")


def _undo_policy(change: Change, actor: changes.Actor) -> None:
    policy = Policy.objects.filter(slug=change.name).first()
    if policy is None:
        raise Conflict(f"there is no policy {change.name} any more")
    policies.change_policy(policy=policy, changed=change.before, actor=actor)


def _require_unchanged(change: Change, present: Mapping[str, object]) -> None:
    if any(present[field] != value for field, value in change.after.items()):
        raise Conflict(f"{change.name} has changed since")


_UNDOS: tuple[tuple[Subject, frozenset[str], Undo], ...] = (
    (Subject.SERVER, frozenset({"deferLoading", "enabled", "refreshIntervalSeconds"}), _undo_server),
    (Subject.TOOL, frozenset({"loading", "keywords", "hidden"}), _undo_tool),
)
