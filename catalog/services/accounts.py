"""Accounts: the first one of a new instance, and what is kept of changes to the others."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction

from catalog.models.changes import Action, Subject
from catalog.services import changes

PASSWORD_BYTES = 12


@dataclass(frozen=True, slots=True)
class SignIn:
    username: str
    password: str

    def __repr__(self) -> str:
        return f"SignIn({self.username})"


@transaction.atomic
def create_first_admin() -> SignIn | None:
    """Make an admin with a random password if nobody can sign in yet. The password is kept nowhere else."""
    if User.objects.exists():
        return None
    sign_in = SignIn(username="admin", password=secrets.token_urlsafe(PASSWORD_BYTES))
    User.objects.create_superuser(username=sign_in.username, password=sign_in.password)
    changes.record(actor=changes.SYSTEM, subject=Subject.USER, name=sign_in.username, action=Action.CREATED)
    return sign_in


@transaction.atomic
def change_own_password(*, user: User, password: str) -> None:
    """The password has been judged already."""
    user.set_password(password)
    user.save(update_fields=["password"])
    before = describe_account(user)
    record_account(user=user, action=Action.CHANGED, actor=changes.actor_of(user), before=before)


def describe_account(user: User) -> dict[str, object]:
    """What the change record keeps of an account: never its password."""
    groups = sorted(user.groups.values_list("name", flat=True)) if user.pk else []
    return {
        "username": user.get_username(),
        "email": user.email,
        "active": user.is_active,
        "superuser": user.is_superuser,
        "groups": groups,
    }


def record_account(
    *, user: User, action: Action, actor: changes.Actor, before: Mapping[str, object] | None = None
) -> None:
    """Call it in the transaction of the change. An edit of nothing that we describe is of the password."""
    after = {} if action == Action.DELETED else describe_account(user)
    if before == after:
        before, after = {}, {"password": "replaced"}
    changes.record(
        actor=actor, subject=Subject.USER, name=user.get_username(), action=action, before=before, after=after
    )
