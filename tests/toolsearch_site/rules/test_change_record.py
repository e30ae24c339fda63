"""No record, no change: where the record of a change cannot be written, nothing of the change is kept."""

from typing import Any

import pytest
from django.apps import apps

from catalog.models import Change, ModelSupport
from catalog.services import changes
from tests.harness.rows import make_policy
from tests.sessions.api.calling import Agent, fill_catalog, make_agent

pytestmark = pytest.mark.django_db

DEFINITION = {"name": "use", "inputSchema": {"type": "object"}}
LAST_USE = {"last_used_at", "last_client", "last_call"}
# What admins change, each through the service that the console uses too.
CALLS: dict[str, tuple[str, str, dict[str, Any] | None]] = {
    "add a server": ("POST", "/servers", {"name": "new", "tools": [DEFINITION]}),
    "add a server by address": ("POST", "/servers", {"name": "new", "url": "https://mcp.example.com/"}),
    "set a server to defer": ("PATCH", "/servers/github", {"deferLoading": True}),
    "disable a server": ("PATCH", "/servers/github", {"enabled": False}),
    "delete a server": ("DELETE", "/servers/github", None),
    "set a tool to load": ("PATCH", "/tools/mcp__github__create_issue", {"loading": "always"}),
    "hide a tool": ("PATCH", "/tools/mcp__github__create_issue", {"hidden": True}),
    "make a policy": ("POST", "/policies", {"slug": "new"}),
    "change a policy": ("PATCH", "/policies/default", {"mode": "off"}),
    "delete a policy": ("DELETE", "/policies/spare", None),
    "import a config": ("POST", "/config", {"mcpServers": {"new": {"url": "https://mcp.example.com/"}}}),
    "make a key": ("POST", "/keys", {"name": "new"}),
    "revoke a key": ("DELETE", "/keys/{key_id}", None),
    "add a model": (
        "POST",
        "/models",
        {"name_pattern": "new-*", "provider": "other", "hosted_search": False},
    ),
    "delete a model": ("DELETE", "/models/{model_id}", None),
}


@pytest.fixture
def admin() -> Agent:
    fill_catalog()
    make_policy(slug="spare")
    return make_agent(admin=True)


def known_ids() -> dict[str, object]:
    return {
        "key_id": make_agent().key.pk,
        "model_id": ModelSupport.objects.values_list("pk", flat=True)[0],
    }


def read_all() -> dict[str, list[Any]]:
    """Every row but the record itself, and the last use of a key."""
    tables = {}
    for label in ("catalog", "agent_sessions"):
        for model in apps.get_app_config(label).get_models():
            if model is not Change:
                names = [one.attname for one in model._meta.concrete_fields]
                columns = [name for name in names if name not in LAST_USE]
                tables[model._meta.label] = list(model._base_manager.order_by("pk").values_list(*columns))
    return tables


@pytest.mark.parametrize("what", CALLS)
def test_change_is_recorded(admin: Agent, what: str) -> None:
    method, path, body = CALLS[what]
    path = path.format(**known_ids())
    recorded, before = Change.objects.count(), read_all()
    answer = admin.call(method, path, body)
    assert answer.status_code < 300, answer.content
    assert read_all() != before
    assert Change.objects.count() > recorded


@pytest.mark.parametrize("what", CALLS)
def test_change_that_cannot_be_recorded_is_not_made(
    admin: Agent, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: Any) -> None:
        raise RuntimeError("the disk is full")

    method, path, body = CALLS[what]
    path = path.format(**known_ids())
    before = read_all()
    monkeypatch.setattr(changes, "record_change", refuse)
    answer = admin.call(method, path, body)
    assert answer.status_code == 500
    assert read_all() == before
