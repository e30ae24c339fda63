"""Writes the change record, in the transaction of the change itself: no record, no change."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.contrib.auth.models import User

from catalog.models.changes import Action, Change, Subject


@dataclass(frozen=True, slots=True)
class Actor:
    """Who makes a change: a signed-in user, an API key, or the program itself."""

    label: str
    user: User | None = None


SYSTEM = Actor(label="toolsearch")
COMMAND_LINE = Actor(label="command line")


def record(
    *,
    actor: Actor,
    subject: Subject,
    name: str,
    action: Action,
    before: Mapping[str, object] | None = None,
    after: Mapping[str, object] | None = None,
) -> None:
    """Keep what differs between before and after. Neither may hold a secret: callers mask them."""
    before, after = before or {}, after or {}
    differing = [field for field in {*before, *after} if before.get(field) != after.get(field)]
    Change.objects.create(
        actor=actor.label,
        user=actor.user,
        subject=subject,
        name=name,
        action=action,
        before={field: before[field] for field in sorted(differing) if field in before},
        after={field: after[field] for field in sorted(differing) if field in after},
    )
