"""People in Django's admin: superusers only, and every change in the record."""

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from catalog.access.roles import Role
from catalog.models import Change
from catalog.models.changes import Action, Subject
from tests.harness.pages import signed_in, text_of
from tests.harness.rows import PASSWORD, make_user

pytestmark = pytest.mark.django_db
NEW_PASSWORD = "a longer and better secret"


@pytest.fixture
def superuser() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root", password=PASSWORD))
    return client


def last_change() -> Change:
    return Change.objects.filter(subject=Subject.USER).latest("pk")


def fields_of(user: User, **changed: object) -> dict[str, object]:
    """What the admin's form sends for an account."""
    joined = user.date_joined
    values = {
        "username": user.username,
        "email": user.email,
        "is_active": "on",
        "date_joined_0": f"{joined:%Y-%m-%d}",
        "date_joined_1": f"{joined:%H:%M:%S}",
        **changed,
    }
    return {name: value for name, value in values.items() if value not in (None, "")}


class TestRecord:
    def test_new_person(self, superuser: Client) -> None:
        values = {
            "username": "ada",
            "usable_password": "true",
            "password1": NEW_PASSWORD,
            "password2": NEW_PASSWORD,
        }
        assert superuser.post("/admin/auth/user/add/", values).status_code == 302
        change = last_change()
        assert (change.actor, change.name, change.action) == ("root", "ada", Action.CREATED)
        assert NEW_PASSWORD not in str(change.after)

    def test_role(self, superuser: Client) -> None:
        user = make_user(Role.VIEWER, username="ada")
        editor = Group.objects.get(name="editor")
        superuser.post(f"/admin/auth/user/{user.pk}/change/", fields_of(user, groups=editor.pk))
        change = last_change()
        assert (change.action, change.before, change.after) == (
            Action.CHANGED,
            {"groups": ["viewer"]},
            {"groups": ["editor"]},
        )

    def test_password_is_said_to_be_replaced_and_not_kept(self, superuser: Client) -> None:
        user = make_user(Role.VIEWER, username="ada")
        values = {"usable_password": "true", "password1": NEW_PASSWORD, "password2": NEW_PASSWORD}
        superuser.post(f"/admin/auth/user/{user.pk}/password/", values)
        user.refresh_from_db()
        assert user.check_password(NEW_PASSWORD)
        assert (last_change().before, last_change().after) == ({}, {"password": "replaced"})

    def test_deletion_alone_and_of_several(self, superuser: Client) -> None:
        ada, ben, eva = (make_user(Role.VIEWER, username=name) for name in ("ada", "ben", "eva"))
        superuser.post(f"/admin/auth/user/{ada.pk}/delete/", {"post": "yes"})
        values = {"action": "delete_selected", "_selected_action": [ben.pk, eva.pk], "post": "yes"}
        superuser.post("/admin/auth/user/", values)
        gone = Change.objects.filter(subject=Subject.USER, action=Action.DELETED)
        assert sorted(gone.values_list("name", flat=True)) == ["ada", "ben", "eva"]

    def test_own_password(self) -> None:
        user = make_user(Role.VIEWER, username="ada")
        client = Client()
        client.force_login(user)
        values = {"old_password": PASSWORD, "new_password1": NEW_PASSWORD, "new_password2": NEW_PASSWORD}
        client.post("/account/", values)
        assert (last_change().actor, last_change().after) == ("ada", {"password": "replaced"})


def test_menu_leads_superusers_there(superuser: Client) -> None:
    assert 'href="/admin/"' in text_of(superuser.get("/account/"))
    assert 'href="/admin/"' not in text_of(signed_in(Role.ADMIN).get("/account/"))
    assert superuser.get("/admin/").status_code == 200
    assert signed_in(Role.ADMIN).get("/admin/", follow=True).status_code == 403
