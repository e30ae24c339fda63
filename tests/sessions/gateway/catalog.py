"""The catalog that the gateway's tests call: one server, and what changes about it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone

from catalog.access.actors import COMMAND_LINE
from catalog.domain.connection import Connection
from catalog.domain.definitions import Definition
from catalog.models import ApiKey, Policy, Server, ServerFeatures, Tool
from catalog.services import connections, derived_state, keys, policies, tools
from sessions.models import Call
from sessions.services import calls
from tests.harness.rows import make_policy, make_server
from tests.harness.upstream_fixture import ANY, NAMES, READ_ONLY, REGION, HttpFixture

ON_SQLITE = settings.DATABASES["default"]["ENGINE"].endswith("sqlite3")
# What a test commits reaches other threads: on SQLite by a file of its own (`conftest.py`).
ON_THREADS = (
    pytest.mark.django_db if ON_SQLITE else pytest.mark.django_db(transaction=True, serialized_rollback=True)
)
RESOURCES = [{"uri": "note://one", "name": "one", "mimeType": "text/plain"}]
TEMPLATES = [{"uriTemplate": "note://{name}", "name": "notes"}]
PROMPTS = [{"name": "greet", "arguments": [{"name": "name", "required": True}]}]


@dataclass
class Catalog:
    """`server` is the one that behaves on demand; `key` may use all of it."""

    server: Server
    policy: Policy
    key: str

    @classmethod
    def with_server(cls, upstream: HttpFixture) -> "Catalog":
        server = add_server("fixture", upstream.connection())
        give_tools(server, [define(name) for name in NAMES])
        policy = make_policy(slug="all")
        follow()
        return cls(server, policy, make_key(policy)[1])

    def change(self, **fields: object) -> None:
        """Change the policy, as an admin does."""
        change_policy(self.policy, **fields)

    def tool(self, name: str) -> Tool:
        return Tool.objects.get(server=self.server, name=name)


def add_server(name: str, connection: Connection, **values: Any) -> Server:
    """With the fixture's resources and prompts."""
    server = make_server(name=name, **values)
    connections.write_connection(server, connection)
    server.save()
    ServerFeatures.objects.create(
        server=server, resources=RESOURCES, templates=TEMPLATES, prompts=PROMPTS, completions=True
    )
    return server


def define(name: str, schema: Mapping[str, Any] | None = None, **values: Any) -> Definition:
    return Definition(
        name=name,
        description=values.pop("description", f"Behaves as its name says: {name.replace('_', ' ')}"),
        input_schema=schema or (REGION if name == "region" else ANY),
        annotations={"readOnlyHint": name in READ_ONLY},
        **values,
    )


def give_tools(server: Server, definitions: Sequence[Definition]) -> None:
    tools.store_definitions(server=server, definitions=definitions, now=timezone.now())


def follow() -> None:
    """What a worker does within two seconds of a change."""
    derived_state.bring_up_to_date()


def make_key(policy: Policy, **values: Any) -> tuple[ApiKey, str]:
    made = keys.create_key(name=f"key of {policy.slug}", actor=COMMAND_LINE, policy=policy, **values)
    return made.key, made.text


def change_policy(policy: Policy, **fields: object) -> None:
    policies.change_policy(policy=policy, changed=fields, actor=COMMAND_LINE)
    follow()


def recorded_calls() -> list[Call]:
    """Oldest first."""
    calls.flush()
    return list(Call.objects.order_by("at", "pk"))


def last_call() -> Call:
    return recorded_calls()[-1]
