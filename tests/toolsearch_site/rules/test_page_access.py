"""Who may open what in the console and the admin site: every address of the URL map, by everybody.

A new page fails here until it has its line in `PAGES`.
"""

import copy
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from django.test import Client

from catalog.access.roles import Role
from catalog.models import Change, ModelSupport, SavedQuery
from tests.harness.addresses import admin_addresses, console_addresses
from tests.harness.rows import (
    make_call,
    make_change,
    make_key,
    make_lease,
    make_session,
    make_tool,
    make_user,
)

pytestmark = pytest.mark.django_db


class Least(IntEnum):
    """The least that a caller must be. The last is for a method that an address does not know."""

    ANYONE = 0
    SIGNED_IN = 1
    VIEWER = 2
    EDITOR = 3
    ADMIN = 4
    SUPERUSER = 5
    NOBODY = 6


ANYONE, SIGNED_IN, VIEWER, EDITOR, ADMIN, SUPERUSER, NOBODY = Least

# What each address asks for: to read it (GET), and to change something by it (POST).
PAGES: dict[str, tuple[Least, Least]] = {
    "overview": (VIEWER, NOBODY),
    "overview_activity": (VIEWER, NOBODY),
    "step_dismiss": (NOBODY, VIEWER),
    "connect": (VIEWER, NOBODY),
    "find": (VIEWER, NOBODY),
    "system": (ADMIN, NOBODY),
    "sign_in": (ANYONE, ANYONE),
    "sign_out": (NOBODY, SIGNED_IN),
    "account": (SIGNED_IN, SIGNED_IN),
    "choose_theme": (NOBODY, ANYONE),
    "server_list": (VIEWER, NOBODY),
    "server_map": (VIEWER, NOBODY),
    "server_options": (VIEWER, NOBODY),
    "server_add": (EDITOR, NOBODY),
    "server_paste": (NOBODY, EDITOR),
    "server_create": (NOBODY, EDITOR),
    "import_result": (VIEWER, NOBODY),
    "server_test_new": (NOBODY, EDITOR),
    "connection_test": (EDITOR, NOBODY),
    "server_test": (NOBODY, EDITOR),
    "server_edit": (EDITOR, EDITOR),
    "server_refresh": (VIEWER, EDITOR),
    "server_loading": (EDITOR, EDITOR),
    "server_enabled": (NOBODY, EDITOR),
    "server_interval": (NOBODY, EDITOR),
    "server_delete": (NOBODY, ADMIN),
    "server_connect": (ADMIN, ADMIN),
    "server_disconnect": (NOBODY, ADMIN),
    "server_client": (NOBODY, ADMIN),
    "server_detail": (VIEWER, NOBODY),
    # Answers everybody, and only a browser whose sign-in is under way with more than a refusal.
    "sign_in_callback": (ANYONE, NOBODY),
    "client_document": (ANYONE, NOBODY),
    "demo_enabled": (NOBODY, EDITOR),
    "demo_remove": (NOBODY, ADMIN),
    "tool_list": (VIEWER, NOBODY),
    "tools_csv": (VIEWER, NOBODY),
    "tools_json": (VIEWER, NOBODY),
    "bulk_edit": (EDITOR, EDITOR),
    "tool_detail": (VIEWER, NOBODY),
    "tool_loading": (VIEWER, EDITOR),
    "tool_sessions": (VIEWER, NOBODY),
    "tool_gateway": (VIEWER, NOBODY),
    "tool_settings_change": (NOBODY, EDITOR),
    "policy_list": (VIEWER, NOBODY),
    "policy_create": (EDITOR, EDITOR),
    "policy_detail": (VIEWER, NOBODY),
    "policy_edit": (EDITOR, EDITOR),
    "policy_preview": (NOBODY, EDITOR),
    "policy_roll_back": (NOBODY, EDITOR),
    "policy_delete": (NOBODY, ADMIN),
    "agent_answer": (VIEWER, NOBODY),
    "agent_answer_json": (VIEWER, NOBODY),
    "model_list": (VIEWER, ADMIN),
    "model_choose": (NOBODY, VIEWER),
    "model_edit": (ADMIN, ADMIN),
    "model_delete": (NOBODY, ADMIN),
    "review": (VIEWER, NOBODY),
    "review_count": (VIEWER, NOBODY),
    "review_approve": (NOBODY, ADMIN),
    "review_approve_server": (NOBODY, ADMIN),
    "change_list": (VIEWER, NOBODY),
    "change_undo": (NOBODY, EDITOR),
    "session_list": (VIEWER, NOBODY),
    "session_detail": (VIEWER, NOBODY),
    "session_reset": (NOBODY, EDITOR),
    "session_load": (NOBODY, EDITOR),
    "session_unload": (NOBODY, EDITOR),
    "session_delete": (NOBODY, ADMIN),
    "gateway": (VIEWER, NOBODY),
    "server_gateway": (VIEWER, NOBODY),
    "lease_close": (NOBODY, EDITOR),
    "call_list": (VIEWER, NOBODY),
    "call_detail": (VIEWER, NOBODY),
    "calls_csv": (VIEWER, NOBODY),
    "calls_json": (VIEWER, NOBODY),
    "console": (VIEWER, NOBODY),
    "saved_list": (VIEWER, NOBODY),
    "saved_save": (NOBODY, EDITOR),
    "saved_run": (NOBODY, EDITOR),
    "saved_delete": (NOBODY, EDITOR),
    "key_list": (ADMIN, ADMIN),
    "key_revoke": (NOBODY, ADMIN),
}
# Everything in the admin site is a superuser's. Anybody may sign out there, and autocompletion without a
# question refuses everybody.
ADMIN_EXCEPTIONS = {"logout", "autocomplete"}


@dataclass(frozen=True)
class Callers:
    """One of each kind, and the ids of things that are there, none of them the caller's own."""

    clients: dict[Least, Client]
    things: dict[str, object]


@pytest.fixture
def callers() -> Callers:
    tool = make_tool()
    change, key = make_change(), make_key()
    members = {
        SIGNED_IN: make_user(Role.NONE),
        VIEWER: make_user(Role.VIEWER),
        EDITOR: make_user(Role.EDITOR),
        # On the staff and with every right of Django's own: still no superuser.
        ADMIN: make_user(Role.ADMIN, is_staff=True),
        SUPERUSER: User.objects.create_superuser("root"),
    }
    clients = {ANYONE: Client()}
    for least, user in members.items():
        clients[least] = Client()
        clients[least].force_login(user)
    return Callers(clients, make_things(tool=tool, change=change, key=key))


def make_things(*, tool: Any, change: Any, key: Any) -> dict[str, object]:
    """A value for every parameter that a route may name."""
    return {
        "name": tool.server.name,
        "qualified_name": tool.qualified_name,
        "slug": "default",
        "key_id": key.pk,
        "job_id": 1,
        "change_id": change.pk,
        "session_id": make_session(key=key).pk,
        "lease_id": make_lease(key=key).pk,
        "call_id": make_call(key=key).pk,
        "saved_id": SavedQuery.objects.create(policy=key.policy, query="q", expected=[]).pk,
        "model_id": ModelSupport.objects.values_list("pk", flat=True)[0],
        # The admin site's own.
        "id": User.objects.values_list("pk", flat=True)[0],
        "object_id": Group.objects.values_list("pk", flat=True)[0],
        "content_type_id": ContentType.objects.get_for_model(Group).pk,
        "app_label": "auth",
        "url": "nothing-here",
    }


def outcome(client: Client, method: str, path: str) -> str:
    """`let in`, `refused` or `no such method`; what it did is undone, signing out included."""
    cookies = copy.deepcopy(client.cookies)
    with transaction.atomic():
        answer = client.get(path) if method == "GET" else client.post(path)
        transaction.set_rollback(True)
    client.cookies = cookies
    assert answer.status_code < 500, path
    location = answer.headers.get("Location", "")
    if answer.status_code == 405:
        return "no such method"
    if answer.status_code in (401, 403) or (answer.status_code == 302 and "?next=" in location):
        return "refused"
    return "let in"


def expected(caller: Least, least: Least) -> set[str]:
    """A method that is not there may be told before or after who asks for it."""
    if least is NOBODY:
        return {"no such method", "refused"}
    return {"let in"} if caller >= least else {"refused"}


def test_every_page_has_a_rule() -> None:
    missing = [f"{one.route} ({one.name})" for one in console_addresses() if one.name not in PAGES]
    assert not missing, f"add to PAGES who may read and who may change by: {', '.join(missing)}"


def test_every_page_lets_in_whom_it_should(callers: Callers) -> None:
    before = Change.objects.count()
    wrong = []
    for address in console_addresses():
        path = address.fill(callers.things)
        for method, least in zip(("GET", "POST"), PAGES.get(address.name, ()), strict=False):
            for caller, client in callers.clients.items():
                found = outcome(client, method, path)
                if found not in expected(caller, least):
                    wrong.append(f"{method} {path} as {caller.name}: {found}")
    assert not wrong, "\n".join(wrong)
    assert Change.objects.count() == before


def test_every_rule_is_of_a_page_that_is_there() -> None:
    assert PAGES.keys() - {address.name for address in console_addresses()} == set()


def test_admin_site_is_for_superusers_only(callers: Callers) -> None:
    wrong = []
    for address in admin_addresses():
        path = address.fill(callers.things)
        for caller, client in callers.clients.items():
            is_refused = outcome(client, "GET", path) == "refused"
            if is_refused == (caller is SUPERUSER) and address.name not in ADMIN_EXCEPTIONS:
                wrong.append(f"GET {path} as {caller.name}")
    assert not wrong, "\n".join(wrong)


def test_admin_site_has_no_sign_in_of_its_own(client: Client) -> None:
    assert client.get("/admin/", follow=True).redirect_chain[-1][0].startswith("/sign-in/?next=")
    assert client.post("/admin/login/", {"username": "root", "password": "x"}).status_code == 302


@pytest.mark.parametrize(
    "authorization", [None, "Bearer ", "Bearer x", "Basic eDp4"], ids=["none", "empty", "unknown", "password"]
)
def test_metrics_are_for_a_key(callers: Callers, authorization: str | None) -> None:
    """They are answered before the URL map: a cookie does not count there, whoever's it is."""
    headers = {"Authorization": authorization} if authorization else {}
    for client in callers.clients.values():
        assert client.get("/metrics", headers=headers).status_code in (401, 403)


def test_every_change_needs_the_csrf_token(callers: Callers) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.get(username="root"))
    wrong = []
    for address in console_addresses():
        if PAGES.get(address.name, (NOBODY, NOBODY))[1] is not NOBODY:
            answer = client.post(address.fill(callers.things))
            if answer.status_code != 403 or "csrf" not in answer.content.decode().lower():
                wrong.append(address.route)
    assert not wrong, "\n".join(wrong)
