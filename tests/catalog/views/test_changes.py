"""The page of the change record."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from catalog.access.roles import Role
from catalog.models import Change, PolicyVersion
from catalog.models.changes import Action, Subject
from catalog.services import change_signatures
from tests.harness.pages import HTMX, signed_in, text_of, visible_text
from tests.harness.rows import make_change, make_server
from tests.sessions.api.calling import Agent, fill_catalog, make_agent

pytestmark = pytest.mark.django_db


def names_on(response: Any) -> list[str]:
    return [row.change.name for row in response.context["page"].rows]


def test_shows_who_what_and_from_what_to_what() -> None:
    make_change(actor="ada", name="github", before={"enabled": True, "url": "a"}, after={"enabled": False})
    page = visible_text(signed_in(Role.VIEWER).get("/changes/"))
    assert "ada changed server github enabled yes → no url a" in page


@pytest.mark.parametrize(
    ("role", "sees_keys"), [(Role.VIEWER, False), (Role.EDITOR, False), (Role.ADMIN, True)]
)
@pytest.mark.parametrize("address", ["/changes/", "/changes/?subject=key", "/"])
def test_changes_of_keys_are_for_who_may_see_keys(role: Role, sees_keys: bool, address: str) -> None:
    make_change(subject=Subject.KEY, name="robot-key", after={"prefix": "canary"})
    assert ("robot-key" in text_of(signed_in(role).get(address))) == sees_keys


@pytest.fixture
def by_a_key() -> Agent:
    """A key that has changed a tool and a policy."""
    fill_catalog()
    robot = make_agent(admin=True)
    robot.call("PATCH", "/tools/mcp__github__create_issue", {"loading": "always"})
    robot.call("PATCH", "/policies/default", {"max_results": 7})
    return robot


PAGES_WITH_CHANGES = (
    *("/changes/", "/tools/mcp__github__create_issue/", "/policies/default/"),
    "/",
)


@pytest.mark.parametrize("role", [Role.VIEWER, Role.EDITOR])
@pytest.mark.parametrize("address", PAGES_WITH_CHANGES)
def test_change_by_a_key_does_not_tell_how_the_key_begins(by_a_key: Agent, role: Role, address: str) -> None:
    assert by_a_key.key.prefix not in text_of(signed_in(role).get(address))
    assert not Change.objects.filter(actor__contains=by_a_key.key.prefix).exclude(subject="key").exists()
    assert Change.objects.filter(actor=f"key tester #{by_a_key.key.pk}").count() == 2


@pytest.mark.parametrize(
    ("role", "sees_it"), [(Role.VIEWER, False), (Role.EDITOR, False), (Role.ADMIN, True)]
)
@pytest.mark.parametrize("address", PAGES_WITH_CHANGES[:3])
def test_record_of_before_tells_it_to_admins_only(
    by_a_key: Agent, role: Role, sees_it: bool, address: str
) -> None:
    label = f"key tester ({by_a_key.key.prefix})"
    Change.objects.filter(actor__startswith="key ").update(actor=label)
    PolicyVersion.objects.filter(actor__startswith="key ").update(actor=label)
    page = text_of(signed_in(role).get(address))
    assert (by_a_key.key.prefix in page) == sees_it
    assert "key tester" in page


@pytest.mark.parametrize("asked", ["key tester", "key tester (aaaaaaaa)", "key tester (zzzzzzzz)"])
def test_filter_by_who_finds_records_of_before_and_confirms_no_guess(asked: str) -> None:
    make_change(actor="key tester (aaaaaaaa)", name="one")
    make_change(actor="key tester", name="two")
    make_change(actor="key tester too (aaaaaaaa)", name="three")
    found = names_on(signed_in(Role.VIEWER).get("/changes/", {"actor": asked}))
    assert sorted(found) == ["one", "two"]
    exact = names_on(signed_in(Role.ADMIN).get("/changes/", {"actor": "key tester (aaaaaaaa)"}))
    assert exact == ["one"]


def test_choice_of_who_leaves_out_those_who_changed_keys_alone() -> None:
    make_change(actor="key maker (aaaaaaaa)", subject=Subject.KEY)
    assert "key maker" not in text_of(signed_in(Role.EDITOR).get("/changes/"))
    assert "key maker" in text_of(signed_in(Role.ADMIN).get("/changes/"))


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("actor=ada", ["one", "two"]),
        ("subject=tool", ["two"]),
        ("action=deleted", ["three"]),
        ("q=W", ["two"]),
        ("actor=ada&subject=server", ["one"]),
        ("subject=nonsense", ["one", "three", "two"]),
    ],
)
def test_filters_by_what_the_url_says(query: str, found: list[str]) -> None:
    make_change(actor="ada", name="one")
    make_change(actor="ada", name="two", subject=Subject.TOOL)
    make_change(actor="ben", name="three", action=Action.DELETED)
    assert sorted(names_on(signed_in(Role.VIEWER).get(f"/changes/?{query}"))) == found


@pytest.mark.parametrize(
    ("when", "found"), [("1", ["new"]), ("24", ["new", "older"]), ("x", ["new", "older"])]
)
def test_filters_by_when(when: str, found: list[str]) -> None:
    make_change(name="new")
    older = make_change(name="older")
    Change.objects.filter(pk=older.pk).update(at=timezone.now() - timedelta(hours=3))
    assert sorted(names_on(signed_in(Role.VIEWER).get(f"/changes/?when={when}"))) == found


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("first_day=2026-03-02", ["late", "second"]),
        ("last_day=2026-03-02", ["first", "second"]),
        ("first_day=2026-03-02&last_day=2026-03-02", ["second"]),
        ("first_day=yesterday", ["first", "late", "second"]),
        ("last_day=9999-12-31", ["first", "late", "second"]),
        ("first_day=2026-03-01&when=1", []),
    ],
)
def test_filters_by_day(query: str, found: list[str]) -> None:
    for name, at in (
        ("first", datetime(2026, 3, 1, 23, 59, 59, tzinfo=UTC)),
        ("second", datetime(2026, 3, 2, 23, 59, 59, tzinfo=UTC)),
        ("late", datetime(2026, 3, 3, tzinfo=UTC)),
    ):
        Change.objects.filter(pk=make_change(name=name).pk).update(at=at)
    assert sorted(names_on(signed_in(Role.VIEWER).get(f"/changes/?{query}"))) == found


def test_names_lead_to_what_changed() -> None:
    make_change(name="a/b", subject=Subject.SERVER)
    make_change(name="gone", subject=Subject.SERVER, action=Action.DELETED)
    make_change(name="coder (1234)", subject=Subject.KEY)
    make_change(name="no / policy", subject=Subject.POLICY)
    make_change(
        name="16 tools",
        subject=Subject.TOOL,
        before={"loading": {"defer": [1]}},
        after={"loading": {"always": [1]}},
    )
    page = text_of(signed_in(Role.VIEWER).get("/changes/"))
    assert re.findall(r'<a class="name" href="([^"]+)"', page) == ["/servers/a/b/"]


def test_import_of_many_servers_is_one_row_that_opens() -> None:
    listed = {f"server-{number:03}": f"http https://s{number}.example/" for number in range(40)}
    make_change(name="40 servers", subject=Subject.SERVER, action=Action.CREATED, after={"servers": listed})
    response = signed_in(Role.VIEWER).get("/changes/")
    assert "server-039" in visible_text(response)
    assert "37 more" in visible_text(response)
    assert 'href="/servers/40 servers/"' not in text_of(response)
    assert "/servers/40" not in text_of(response)


class TestUndo:
    def test_is_offered_to_editors_where_it_can_be(self) -> None:
        undoable = make_change(before={"enabled": True}, after={"enabled": False})
        make_change(action=Action.CREATED)
        page = text_of(signed_in(Role.EDITOR).get("/changes/"))
        assert page.count("/undo/") == 1
        assert f"/changes/{undoable.pk}/undo/" in page
        assert "/undo/" not in text_of(signed_in(Role.VIEWER).get("/changes/"))

    def test_change_of_a_model_is_for_admins_to_undo(self) -> None:
        change = make_change(subject=Subject.MODEL, name="claude-*", action=Action.CREATED)
        assert f"/changes/{change.pk}/undo/" in text_of(signed_in(Role.ADMIN).get("/changes/"))
        assert "/undo/" not in text_of(signed_in(Role.EDITOR).get("/changes/"))
        assert signed_in(Role.EDITOR).post(f"/changes/{change.pk}/undo/").status_code == 403

    def test_takes_back_and_leads_back(self) -> None:
        server = make_server(enabled=False)
        change = make_change(name=server.name, before={"enabled": True}, after={"enabled": False})
        client = signed_in(Role.EDITOR)
        response = client.post(f"/changes/{change.pk}/undo/", {"next": "/changes/?when=1"})
        assert response.headers["Location"] == "/changes/?when=1"
        server.refresh_from_db()
        assert server.enabled
        again = client.post(f"/changes/{change.pk}/undo/", {"next": "//evil.example/"}, follow=True)
        assert again.redirect_chain == [("/changes/", 302)]
        assert f"Nothing was undone: {server.name} has changed since: enabled by editor" in visible_text(
            again
        )

    def test_others_are_refused(self, client: Client) -> None:
        address = f"/changes/{make_change().pk}/undo/"
        assert client.post(address).status_code == 302
        assert signed_in(Role.VIEWER).post(address).status_code == 403
        assert signed_in(Role.EDITOR).get(address).status_code == 405
        assert signed_in(Role.EDITOR).post("/changes/999999/undo/").status_code == 404


def test_part_is_the_table_alone() -> None:
    response = signed_in(Role.VIEWER).get("/changes/", headers=HTMX)
    assert "<html" not in text_of(response)
    assert 'id="change-table"' in text_of(response)


def test_empty_list_tells_an_empty_record_from_a_narrow_filter() -> None:
    client = signed_in(Role.VIEWER)
    assert "No changes yet" in visible_text(client.get("/changes/"))
    assert "No change matches" in visible_text(client.get("/changes/?q=x"))


def test_costs_the_same_queries_for_many(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    for number in range(60):
        make_change(before={"a": number})
    client = signed_in(Role.VIEWER)
    client.get("/changes/")
    with django_assert_num_queries(7):
        client.get("/changes/")


def test_tells_how_many_are_sealed() -> None:
    make_change()
    assert "signed." not in visible_text(signed_in(Role.VIEWER).get("/changes/"))
    change_signatures.sign_new()
    assert "1 entry is signed" in visible_text(signed_in(Role.VIEWER).get("/changes/"))


def test_needs_sign_in_and_a_role_and_only_reads(client: Client) -> None:
    assert client.get("/changes/").status_code == 302
    assert signed_in(Role.NONE).get("/changes/").status_code == 403
    assert signed_in(Role.ADMIN).post("/changes/").status_code == 405


def test_what_was_created_says_only_what_is_set() -> None:
    fields: dict[str, object] = {
        "url": "",
        "headers": [],
        "deferLoading": None,
        "command": "npx",
        "enabled": False,
    }
    make_change(name="files", action=Action.CREATED, after=fields)
    page = visible_text(signed_in(Role.VIEWER).get("/changes/"))
    assert "created server files command npx enabled no" in page
    assert "url" not in page.partition("created server files")[2]


def test_long_change_folds() -> None:
    make_change(
        name="files", before={f"field{n}": 1 for n in range(9)}, after={f"field{n}": 2 for n in range(9)}
    )
    page = text_of(signed_in(Role.VIEWER).get("/changes/"))
    shown, folded = page.split("6 more")
    assert shown.count('class="field-name"') == 3
    assert folded.count('class="field-name"') == 6
