"""Three roles, each including the one before it."""

import pytest
from django.contrib.auth.models import AnonymousUser, Group, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from catalog.access.roles import Role, require_role, role_of
from catalog.domain.errors import NotAllowed
from tests.harness.pages import signed_in
from tests.harness.rows import make_server, make_user

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


class TestReadOnce:
    def test_page_asks_for_the_groups_once(self) -> None:
        client, server = signed_in(Role.EDITOR), make_server()
        for method, address in (("GET", ""), ("POST", "refresh/")):
            with CaptureQueriesContext(connection) as made:
                client.generic(method, server.get_absolute_url() + address)
            groups = [query["sql"] for query in made.captured_queries if "auth_user_groups" in query["sql"]]
            assert len(groups) == 1

    def test_change_of_role_is_in_force_with_the_next_request(self) -> None:
        user = make_user(Role.ADMIN)
        client = Client()
        client.force_login(user)
        assert client.get("/keys/").status_code == 200
        Group.objects.get(name="admin").user_set.remove(User.objects.get(pk=user.pk))
        assert client.get("/keys/").status_code == 403
        User.objects.get(pk=user.pk).groups.add(Group.objects.get(name="admin"))
        assert client.get("/keys/").status_code == 200

    def test_change_through_the_same_object_is_in_force_at_once(self) -> None:
        user = make_user(Role.ADMIN)
        assert role_of(user) is Role.ADMIN
        user.groups.set([Group.objects.get(name="viewer")])
        assert role_of(user) is Role.VIEWER
        user.groups.clear()
        assert role_of(user) is Role.NONE
