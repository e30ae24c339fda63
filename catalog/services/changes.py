"""Writes the change record, in the transaction of the change itself."""

from collections.abc import Collection, Mapping

from catalog.access.actors import Actor, hide_prefix
from catalog.models import Tool
from catalog.models.changes import Action, Change, Subject

LATER_LOOKED_AT = 100  # of the changes that came after one, to say who made them


def record_change(
    *,
    actor: Actor,
    subject: Subject,
    name: str,
    action: Action = Action.CHANGED,
    before: Mapping[str, object] | None = None,
    after: Mapping[str, object] | None = None,
) -> Change:
    """Store the fields that differ between before and after. Neither may hold a secret: callers mask them."""
    before, after = before or {}, after or {}
    differing = [field for field in {*before, *after} if before.get(field) != after.get(field)]
    return Change.objects.create(
        actor=actor.label,
        user=actor.user,
        subject=subject,
        name=name,
        action=action,
        before={field: before[field] for field in sorted(differing) if field in before},
        after={field: after[field] for field in sorted(differing) if field in after},
    )


def find_changed_tool(change: Change) -> Tool | None:
    """The tool that a record of one tool is about, if it still has that name.

    Names are reassigned when a tool's row is deleted and when a server's kind changes. A tool whose server
    has changed its kind since counts as another one: the record does not say which tool had which name.
    """
    found = Tool.objects.select_related("server").filter(qualified_name=change.name)
    tool = found.filter(first_seen_at__lte=change.at).first()
    if tool is None:
        return None
    later = Change.objects.filter(subject=Subject.SERVER, name=tool.server.name, pk__gt=change.pk)
    renamed = later.filter(action=Action.CHANGED, after__has_key="kind")
    return None if renamed.exists() else tool


def later_changes(change: Change, fields: Collection[str]) -> str:
    """The fields changed after a change of the same subject, and by whom, newest first."""
    later = Change.objects.filter(subject=change.subject, name=change.name, pk__gt=change.pk).order_by("-pk")
    actors: dict[str, str] = {}
    for one in later[:LATER_LOOKED_AT]:
        for field in (*one.before, *one.after):
            actors.setdefault(field, hide_prefix(one.actor))
    return ", ".join(f"{field} by {actors[field]}" if field in actors else field for field in fields)
