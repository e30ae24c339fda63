"""Who may call what by REST: every operation, with no key, a dead key, an agent's, another's and an admin's.

A new operation fails here until it has its line in `OPERATIONS`.
"""

import json
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client
from django.utils import timezone

from catalog.models import ApiKey, Change, ModelSupport
from tests.harness.addresses import api_addresses
from tests.harness.rows import make_policy
from tests.sessions.api.calling import Agent, fill_catalog, make_agent
from toolsearch_site.api.mount import api

pytestmark = pytest.mark.django_db

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


class Who(Enum):
    ANYONE = "anyone"
    AGENT = "any key"
    OWNER = "the key whose session it is"
    SAME_POLICY = "a key of that policy, or an admin's"
    ADMIN = "an admin's key"


OPERATIONS = {
    "get_health": Who.ANYONE,
    "list_tools": Who.AGENT,
    "get_tool": Who.AGENT,
    "change_tool": Who.ADMIN,
    "list_review": Who.ADMIN,
    "approve_tools": Who.ADMIN,
    "list_servers": Who.AGENT,
    "get_server": Who.AGENT,
    "create_server": Who.ADMIN,
    "change_server": Who.ADMIN,
    "delete_server": Who.ADMIN,
    "refresh_server": Who.ADMIN,
    "test_server": Who.ADMIN,
    "get_refresh": Who.ADMIN,
    "list_policies": Who.ADMIN,
    "create_policy": Who.ADMIN,
    "get_policy": Who.ADMIN,
    "change_policy": Who.ADMIN,
    "delete_policy": Who.ADMIN,
    "list_policy_versions": Who.ADMIN,
    "roll_back_policy": Who.ADMIN,
    "preview_policy": Who.ADMIN,
    "get_policy_tools": Who.SAME_POLICY,
    "get_policy_client_list": Who.ADMIN,
    "import_config": Who.ADMIN,
    "export_config": Who.ADMIN,
    "list_models": Who.AGENT,
    "get_model": Who.AGENT,
    "create_model": Who.ADMIN,
    "change_model": Who.ADMIN,
    "patch_model": Who.ADMIN,
    "delete_model": Who.ADMIN,
    "list_keys": Who.ADMIN,
    "create_key": Who.ADMIN,
    "revoke_key": Who.ADMIN,
    "create_session": Who.AGENT,
    "list_sessions": Who.AGENT,
    "get_session": Who.OWNER,
    "change_session": Who.OWNER,
    "delete_session": Who.OWNER,
    "search": Who.OWNER,
    "end_turn": Who.OWNER,
    "unload_tools": Who.OWNER,
    "reset_session": Who.OWNER,
    "compact_session": Who.OWNER,
    "take_snapshot": Who.OWNER,
    "list_snapshots": Who.OWNER,
    "restore_snapshot": Who.OWNER,
    "get_session_tools": Who.OWNER,
    "list_calls": Who.ADMIN,
}
# What passes the check of an operation's own fields, where nothing at all does not.
BODIES: dict[str, dict[str, object]] = {
    "unload_tools": {"names": ["x"]},
    "restore_snapshot": {"snapshot": 1},
    "search": {"query": "x"},
}
# Documents for people and programs that have no key yet.
OPEN_PAGES = {"/api/v1/openapi.json", "/api/v1/docs", "/api/v1/health"}


@dataclass(frozen=True)
class Operation:
    name: str
    method: str
    path: str


@dataclass(frozen=True)
class World:
    """An agent with a session, others without, and the ids of things that are there."""

    owner: Agent
    other: Agent
    admin: Agent
    dead: list[str]
    things: dict[str, object]

    def operations(self) -> list[Operation]:
        document: dict[str, Any] = api.get_openapi_schema(path_prefix="/api/v1/")
        return [
            Operation(described["operationId"], method.upper(), path.format(**self.things))
            for path, methods in document["paths"].items()
            for method, described in methods.items()
        ]


@pytest.fixture
def world() -> World:
    fill_catalog()
    owner, other = make_agent(), make_agent(policy=make_policy(slug="other"))
    admin = make_agent(admin=True)
    revoked, expired = make_agent(admin=True), make_agent(admin=True)
    now = timezone.now()
    ApiKey.objects.filter(pk=revoked.key.pk).update(revoked_at=now)
    ApiKey.objects.filter(pk=expired.key.pk).update(expires_at=now - timedelta(seconds=1))
    unknown = admin.text[:-1] + ("a" if admin.text[-1] != "a" else "b")
    things = {
        "name": "github",
        "slug": "default",
        "key_id": owner.key.pk,
        "model_id": ModelSupport.objects.values_list("pk", flat=True)[0],
        "session_id": owner.begin().id,
    }
    return World(owner, other, admin, [revoked.text, expired.text, unknown, "tk_x", ""], things)


def ask(text: str | None, operation: Operation, client: Client | None = None) -> int:
    """The status; what the call did is undone."""
    headers = {} if text is None else {"Authorization": f"Bearer {text}"}
    body = "" if operation.method == "GET" else json.dumps(BODIES.get(operation.name, {}))
    with transaction.atomic():
        answer = (client or Client()).generic(
            operation.method, operation.path, body, content_type="application/json", headers=headers
        )
        transaction.set_rollback(True)
    assert answer.status_code < 500 or operation.name == "get_health", operation
    return answer.status_code


def test_every_operation_has_a_rule(world: World) -> None:
    there = {operation.name for operation in world.operations()}
    assert not there - OPERATIONS.keys(), f"add to OPERATIONS who may call: {there - OPERATIONS.keys()}"
    assert not OPERATIONS.keys() - there, f"no longer there: {OPERATIONS.keys() - there}"


def test_every_operation_answers_whom_it_should(world: World) -> None:
    before = Change.objects.count()
    wrong = []
    for operation in world.operations():
        for caller, agent, refusals in (
            ("owner", world.owner, {Who.ADMIN: 403}),
            ("other", world.other, {Who.ADMIN: 403, Who.OWNER: 404, Who.SAME_POLICY: 404}),
            ("admin", world.admin, {Who.OWNER: 404}),
        ):
            status = ask(agent.text, operation)
            refusal = refusals.get(OPERATIONS.get(operation.name, Who.ADMIN))
            is_right = status == refusal if refusal else status not in (401, 403)
            if not is_right:
                wrong.append(f"{operation} as {caller}: {status}")
    assert not wrong, "\n".join(wrong)
    assert Change.objects.count() == before


def test_other_keys_get_the_answer_of_a_session_that_is_not_there(world: World) -> None:
    """Whether a session exists is told to its owner only."""
    path = f"/api/v1/sessions/{world.things['session_id']}"
    missing = "/api/v1/sessions/00000000-0000-4000-8000-000000000000"
    headers = {"Authorization": f"Bearer {world.other.text}"}
    answers = [Client().get(address, headers=headers) for address in (path, missing)]
    assert answers[0].status_code == answers[1].status_code == 404
    assert answers[0].content == answers[1].content


def test_without_a_key_in_force_nothing_answers(world: World) -> None:
    """Every route of the map with every method, also one that no document names. A cookie is no key."""
    signed_in = Client()
    signed_in.force_login(User.objects.create_superuser("root"))
    wrong = []
    for address in api_addresses():
        path = address.fill(world.things)
        if path in OPEN_PAGES:
            continue
        for method in METHODS:
            operation = Operation(address.name, method, path)
            tries = [ask(text, operation) for text in (None, *world.dead)]
            tries.append(ask(None, operation, signed_in))
            if not set(tries) <= {401, 404, 405}:
                wrong.append(f"{operation}: {tries}")
    assert not wrong, "\n".join(wrong)


def test_refusals_of_dead_keys_are_all_alike(world: World) -> None:
    bodies = {
        Client().get("/api/v1/tools", headers={"Authorization": f"Bearer {text}"}).content
        for text in world.dead
    }
    assert len(bodies) == 1
