"""The first account of a new instance."""

import secrets
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
