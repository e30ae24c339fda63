"""Writes the change record, in the transaction of the change itself: no record, no change."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.contrib.auth.models import User

from catalog.access import Role, role_of
from catalog.domain.errors import NotAllowed
from catalog.models.changes import Action, Change, Subject


@dataclass(frozen=True, slots=True)
class Actor:
    """Who makes a change: a signed-in user, an API key, or the program itself."""

    label: str
    role: Role
    user: User | None = None


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
