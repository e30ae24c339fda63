"""Three roles, each a Django group, each including the one before it."""

from collections.abc import Callable
from enum import IntEnum
from functools import wraps
from typing import Concatenate, ParamSpec

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User
from django.db.models import prefetch_related_objects
from django.http import HttpRequest, HttpResponse

from catalog.domain.errors import NotAllowed

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponse]


class Role(IntEnum):
    NONE = 0
    VIEWER = 1
    EDITOR = 2
    ADMIN = 3

    @property
    def group(self) -> str:
        return self.name.lower()


GROUP_ROLES = {role.group: role for role in Role if role is not Role.NONE}


def role_of(user: AbstractBaseUser | AnonymousUser) -> Role:
    """The highest role of a user's groups; a superuser is an admin."""
    if not isinstance(user, User) or not user.is_active:
        return Role.NONE
    if user.is_superuser:
        return Role.ADMIN
    # Once for each user that is read, so once a request. A change made through this very object forgets it.
    prefetch_related_objects([user], "groups")
    names = (group.name for group in user.groups.all())
    return max((GROUP_ROLES[name] for name in names if name in GROUP_ROLES), default=Role.NONE)


def require_role(user: AbstractBaseUser | AnonymousUser, least: Role) -> None:
    """Raises NotAllowed unless the user has at least this role."""
    if role_of(user) < least:
        raise NotAllowed(f"this needs the role {least.group}")


def role_required(least: Role) -> Callable[[View[P]], View[P]]:
    """View decorator that checks the role; the middleware checks the sign-in."""

    def guard(view: View[P]) -> View[P]:
        @wraps(view)
        def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            require_role(request.user, least)
            return view(request, *args, **kwargs)

        return guarded

    return guard
