"""The actor of a change, for permission checks and the change record."""

import re
from dataclasses import dataclass

from django.contrib.auth.models import User

from catalog.access.roles import Role, role_of
from catalog.domain.errors import NotAllowed


@dataclass(frozen=True, slots=True)
class Actor:
    """Who makes a change: a signed-in user, an API key, or the program itself."""

    label: str
    role: Role
    user: User | None = None


# Records of before name a key by how it begins too, which only admins may see.
_LABEL_WITH_PREFIX = re.compile(r"(key .+) \([0-9a-z]{8}\)", re.DOTALL)

SYSTEM = Actor(label="toolsearch", role=Role.ADMIN)
COMMAND_LINE = Actor(label="command line", role=Role.ADMIN)


def actor_of(user: User) -> Actor:
    return Actor(label=user.get_username(), role=role_of(user), user=user)


def hide_prefix(label: str) -> str:
    """The label of an actor without how its key begins."""
    found = _LABEL_WITH_PREFIX.fullmatch(label)
    return found[1] if found else label


def require(actor: Actor, least: Role) -> None:
    """Raises NotAllowed unless the actor has at least this role. Services check it, not only pages."""
    if actor.role < least:
        raise NotAllowed(f"this needs the role {least.group}")
