"""Writes the change record, in the transaction of the change itself: no record, no change."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from django.contrib.auth.models import User

from catalog.access import Role, role_of
from catalog.domain.errors import NotAllowed
from catalog.models import Tool
from catalog.models.changes import Action, Change, Subject


@dataclass(frozen=True, slots=True)
class Actor:
    """Who makes a change: a signed-in user, an API key, or the program itself."""

    label: str
    role: Role
    user: User | None = None


LATER_LOOKED_AT = 100  # of the changes that came after one, to say who made them

SYSTEM = Actor(label="toolsearch", role=Role.ADMIN)
COMMAND_LINE = Actor(label="command line", role=Role.ADMIN)


def actor_of(user: User) -> Actor:
    return Actor(label=user.get_username(), role=role_of(user), user=user)


def require(actor: Actor, least: Role) -> None:
    """Raises NotAllowed unless the actor has at least this role: services ask, not only pages."""
    if actor.role < least:
        raise NotAllowed(f"this needs the role {least.group}")


def record(
    *,
    actor: Actor,
    subject: Subject,
    name: str,
    action: Action,
    before: Mapping[str, object] | None = None,
    after: Mapping[str, object] | None = None,
) -> Change:
    """Keep what differs between before and after. Neither may hold a secret: callers mask them."""
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
    """The tool that a record of one tool is about, where it still has the name that it had then.

    A name moves on when a tool's row is deleted, and when a server's kind changes. A tool whose server has
    changed its kind since counts as another one: the record does not say which tools had which names.
    """
    found = Tool.objects.select_related("server").filter(qualified_name=change.name)
    tool = found.filter(first_seen_at__lte=change.at).first()
    if tool is None:
        return None
    later = Change.objects.filter(subject=Subject.SERVER, name=tool.server.name, pk__gt=change.pk)
    renamed = later.filter(action=Action.CHANGED, after__has_key="kind")
    return None if renamed.exists() else tool


def tell_later(change: Change, fields: Collection[str]) -> str:
    """Which of the fields were changed after a change of the same subject, and by whom, newest first."""
    later = Change.objects.filter(subject=change.subject, name=change.name, pk__gt=change.pk).order_by("-pk")
    actors: dict[str, str] = {}
    for one in later[:LATER_LOOKED_AT]:
        for field in (*one.before, *one.after):
            actors.setdefault(field, one.actor)
    return ", ".join(f"{field} by {actors[field]}" if field in actors else field for field in fields)
