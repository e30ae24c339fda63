"""The undo that a toast offers is that of the reader's own change, whoever else changes the same."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db.models.signals import post_save
from django.test import Client

from catalog.access.roles import Role
from catalog.models import Change, ModelSupport, Policy
from tests.harness.pages import HTMX, signed_in, text_of
from tests.harness.rows import make_server, make_tool

pytestmark = pytest.mark.django_db


@pytest.fixture
def own() -> Iterator[list[Change]]:
    """The changes that are made; right after each of them somebody else changes the same."""
    made: list[Change] = []

    def follow(instance: Change, **_: Any) -> None:
        if instance.actor != "somebody else":
            made.append(instance)
            Change.objects.create(
                actor="somebody else",
                subject=instance.subject,
                name=instance.name,
                action=instance.action,
                before=instance.before,
                after=instance.after,
            )

    post_save.connect(follow, sender=Change)
    yield made
    post_save.disconnect(follow, sender=Change)


def set_server_loading(client: Client) -> Any:
    return client.post("/servers/github/loading/", {"defer": "load"}, follow=True)


def disable_server(client: Client) -> Any:
    return client.post("/servers/github/enabled/", {"enabled": "no"}, follow=True)


def set_tool_loading(client: Client) -> Any:
    return client.post("/tools/mcp__github__read/loading/", {"loading": "always"}, headers=HTMX)


def save_tool(client: Client) -> Any:
    values = {"loading": "always", "keywords": "", "tags": ""}
    return client.post("/tools/mcp__github__read/settings/", values, follow=True)


def roll_policy_back(client: Client) -> Any:
    policy = Policy.objects.get(slug="default")
    policy.versions.create(number=9, fields={"max_results": 7}, actor="ann")
    return client.post("/policies/default/roll-back/", {"number": "9"}, follow=True)


def add_model(client: Client) -> Any:
    return client.post("/models/", {"name_pattern": "house-*", "provider": "anthropic"}, follow=True)


def delete_model(client: Client) -> Any:
    row = ModelSupport.objects.all()[0]
    return client.post(f"/models/{row.pk}/delete/", follow=True)


@pytest.mark.parametrize(
    "act",
    [
        set_server_loading,
        disable_server,
        set_tool_loading,
        save_tool,
        roll_policy_back,
        add_model,
        delete_model,
    ],
)
def test_toast_undoes_what_was_done(own: list[Change], act: Callable[[Client], Any]) -> None:
    make_tool(server=make_server(name="github"), name="read")
    page = text_of(act(signed_in(Role.ADMIN)))
    [change] = own
    offered = re.findall(r'data-toast="undo".*?action="/changes/(\d+)/undo/"', page, re.DOTALL)
    assert offered == [str(change.pk)]
