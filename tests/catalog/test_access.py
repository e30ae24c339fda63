"""Three roles, each including the one before it."""

import pytest
from django.contrib.auth.models import AnonymousUser, Group, User

from catalog.access import Role, require_role, role_of
from catalog.domain.errors import NotAllowed
from tests.rows import make_user

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("role", list(Role))
def test_role_is_that_of_the_group(role: Role) -> None:
    assert role_of(make_user(role)) is role


def test_highest_of_several_groups_counts() -> None:
    user = make_user(Role.VIEWER)
    user.groups.add(Group.objects.get(name="editor"))
    assert role_of(user) is Role.EDITOR


def test_superuser_is_an_admin_and_a_stranger_is_nobody() -> None:
    assert role_of(User.objects.create_superuser("root")) is Role.ADMIN
    assert role_of(AnonymousUser()) is Role.NONE


def test_inactive_user_has_no_role() -> None:
    assert role_of(make_user(Role.ADMIN, is_active=False)) is Role.NONE


@pytest.mark.parametrize("least", [Role.VIEWER, Role.EDITOR, Role.ADMIN])
def test_less_than_the_least_is_refused(least: Role) -> None:
    require_role(make_user(least), least)
    with pytest.raises(NotAllowed, match=least.group):
        require_role(make_user(Role(least - 1)), least)
