"""The checklist of the Overview: a step is there until the data says it is done, or somebody dismisses it."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from catalog.access.roles import Role
from catalog.models import ApiKey, Change, SavedQuery, Server
from catalog.services.demo import load_demo
from tests.harness.pages import HTMX, signed_in, text_of, visible_text
from tests.harness.rows import make_key, make_server, make_user
from toolsearch_site.first_steps import Step, read_steps
from toolsearch_site.models import DismissedStep

pytestmark = pytest.mark.django_db


def open_steps(user: User) -> list[Step]:
    return [state.step for state in read_steps(user) if state.is_open]


def do_step(step: Step) -> None:
    match step:
        case Step.SERVERS:
            make_server()
        case Step.KEY:
            make_key()
        case Step.CALL:
            make_key()
            ApiKey.objects.update(last_used_at=timezone.now())
        case Step.QUERY:
            SavedQuery.objects.create(policy=make_key().policy, query="q", expected=["a"])


@pytest.mark.parametrize("step", Step)
def test_step_is_done_by_what_is_there(step: Step) -> None:
    user = make_user(Role.ADMIN)
    assert open_steps(user) == list(Step)
    do_step(step)
    assert step not in open_steps(user)
    [state] = [state for state in read_steps(user) if state.step == step]
    assert state.is_done


def test_demo_does_no_step() -> None:
    assert load_demo()
    assert open_steps(make_user(Role.ADMIN)) == list(Step)


def test_adding_a_server_leaves_the_other_steps() -> None:
    client = signed_in(Role.ADMIN)
    make_server()
    page = visible_text(client.get("/"))
    assert "Add your servers Done" in page
    for label in ("Create a key", "Connect an agent", "Save a query"):
        assert f"Dismiss “{label}”" in page


def test_card_goes_once_each_step_is_done_or_dismissed() -> None:
    client = signed_in(Role.ADMIN)
    assert "First steps" in visible_text(client.get("/"))
    for step in (Step.SERVERS, Step.CALL):
        do_step(step)
    assert dismiss(client, "query").headers["Location"] == "/"
    assert "First steps" not in visible_text(client.get("/"))


def test_dismissed_step_is_gone_for_whoever_dismissed_it() -> None:
    client, other = signed_in(Role.VIEWER), signed_in(Role.VIEWER)
    for _ in range(2):
        assert dismiss(client, "query").status_code == 302
    assert "Save a query Dismissed" in visible_text(client.get("/"))
    assert "Dismiss “Save a query”" in visible_text(other.get("/"))
    assert DismissedStep.objects.count() == 1
    assert not Change.objects.exists()


@pytest.mark.parametrize("nonsense", ["", "everything", "\0"])
def test_unknown_step_is_not_kept(nonsense: str) -> None:
    assert dismiss(signed_in(Role.VIEWER), nonsense).status_code == 302
    assert not DismissedStep.objects.exists()


def test_stranger_wrong_method_and_no_role_are_refused(client: Client) -> None:
    assert dismiss(client, "query").headers["Location"].startswith("/sign-in/")
    assert dismiss(signed_in(Role.NONE), "query").status_code == 403
    assert signed_in(Role.VIEWER).get("/first-steps/dismiss/").status_code == 405


def test_steps_follow_while_somebody_looks() -> None:
    client = signed_in(Role.ADMIN)
    seen = client.get("/").context["stamp"]
    make_key()
    part = client.get("/", {"seen": seen}, headers=HTMX)
    assert "Create a key Done" in visible_text(part)


class TestDemoNote:
    def test_says_whether_the_numbers_are_the_demos(self) -> None:
        client = signed_in(Role.ADMIN)
        assert "demo" not in visible_text(client.get("/"))
        load_demo()
        assert "These are 12 demo servers" in visible_text(client.get("/"))
        make_server()
        assert "12 demo servers are counted with your own" in visible_text(client.get("/"))
        Server.objects.filter(demo=True).update(enabled=False)
        assert "every number here is of your own tools" in visible_text(client.get("/"))

    def test_offers_what_the_reader_may_do(self) -> None:
        load_demo()
        offered = {role: text_of(signed_in(role).get("/")) for role in (Role.VIEWER, Role.EDITOR, Role.ADMIN)}
        assert "/demo/" not in offered[Role.VIEWER]
        assert "/demo/enabled/" in offered[Role.EDITOR]
        assert "/demo/remove/" not in offered[Role.EDITOR]
        assert "/demo/remove/" in offered[Role.ADMIN]


def dismiss(client: Client, step: str) -> Any:
    return client.post("/first-steps/dismiss/", {"step": step})
