"""Accounts: creates the first admin, and records changes to accounts."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction

from catalog.access import actors
from catalog.models.changes import Action, Subject
from catalog.services import changes

PASSWORD_BYTES = 12


@dataclass(frozen=True, slots=True)
class FirstSignIn:
    username: str
    password: str

    def __repr__(self) -> str:
        return f"SignIn({self.username})"


@transaction.atomic
def create_first_admin() -> FirstSignIn | None:
    """Create an admin with a random password if there is no user yet. The password is stored nowhere else."""
    if User.objects.exists():
        return None
    sign_in = FirstSignIn(username="admin", password=secrets.token_urlsafe(PASSWORD_BYTES))
    User.objects.create_superuser(username=sign_in.username, password=sign_in.password)
    changes.record_change(
        actor=actors.SYSTEM, subject=Subject.USER, name=sign_in.username, action=Action.CREATED
    )
    return sign_in


@transaction.atomic
def change_own_password(*, user: User, password: str) -> None:
    """The caller has validated the password."""
    user.set_password(password)
    user.save(update_fields=["password"])
    before = describe_account(user)
    record_account(user=user, action=Action.CHANGED, actor=actors.actor_of(user), before=before)


def describe_account(user: User) -> dict[str, object]:
    """The account's fields for the change record, never its password."""
    groups = sorted(user.groups.values_list("name", flat=True)) if user.pk else []
    return {
        "username": user.get_username(),
        "email": user.email,
        "active": user.is_active,
        "superuser": user.is_superuser,
        "groups": groups,
    }


def record_account(
    *, user: User, action: Action, actor: actors.Actor, before: Mapping[str, object] | None = None
) -> None:
    """Call in the transaction of the change. An edit of no described field was of the password."""
    after = {} if action == Action.DELETED else describe_account(user)
    if before == after:
        before, after = {}, {"password": "replaced"}
    changes.record_change(
        actor=actor, subject=Subject.USER, name=user.get_username(), action=action, before=before, after=after
    )
