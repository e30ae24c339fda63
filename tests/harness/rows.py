"""Builds rows for tests: every value has a default, name only what the test is about."""

from datetime import timedelta
from itertools import count
from typing import Any

from django.contrib.auth.models import Group, User
from django.utils import timezone

from catalog.access.roles import Role
from catalog.domain.choices import Transport
from catalog.domain.definitions import Definition
from catalog.models import ApiKey, Change, Job, Policy, RefreshRun, Server, Tool
from catalog.models.changes import Action, Subject
from catalog.models.jobs import JobKind
from catalog.services import tools
from sessions.models import (
    AgentSession,
    Call,
    CallOutcome,
    EventKind,
    GatewayClient,
    GatewayProcess,
    OpenLease,
    SearchEvent,
    SearchEventOutcome,
    SessionEvent,
    UpstreamState,
    Via,
)

_numbers = count(1)
PASSWORD = "correct horse battery staple"


def make_user(role: Role, **values: Any) -> User:
    user = User.objects.create_user(
        username=values.pop("username", f"{role.group}-{next(_numbers)}"), password=PASSWORD, **values
    )
    if role is not Role.NONE:
        user.groups.add(Group.objects.get(name=role.group))
    return user


def make_server(**values: Any) -> Server:
    values.setdefault("name", f"server-{next(_numbers)}")
    values.setdefault("transport", Transport.SNAPSHOT)
    return Server.objects.create(**values)


def make_tool(*, server: Server | None = None, **values: Any) -> Tool:
    """Admin settings (`loading`, `keywords`, `hidden`) beside the definition's own fields."""
    settings = {field: values.pop(field) for field in ("loading", "keywords", "hidden") if field in values}
    server = server or make_server()
    definition = Definition(name=values.pop("name", f"tool_{next(_numbers)}"), **values)
    known = [_definition_of(tool) for tool in server.tools.filter(gone_at=None)]
    tools.store_definitions(server=server, definitions=[*known, definition], now=timezone.now())
    Tool.objects.filter(server=server, name=definition.name).update(**settings)
    return Tool.objects.get(server=server, name=definition.name)


def make_policy(**values: Any) -> Policy:
    values.setdefault("slug", f"policy-{next(_numbers)}")
    return Policy.objects.create(**values)


def make_change(**values: Any) -> Change:
    values.setdefault("actor", "somebody")
    values.setdefault("subject", Subject.SERVER)
    values.setdefault("action", Action.CHANGED)
    values.setdefault("name", f"thing-{next(_numbers)}")
    return Change.objects.create(**values)


def make_run(*, server: Server, **values: Any) -> RefreshRun:
    """A refresh that ended just now; with `error_code` one that failed."""
    now = timezone.now()
    values.setdefault("started_at", now - timedelta(seconds=2))
    values.setdefault("finished_at", now)
    return RefreshRun.objects.create(server=server, **values)


def make_job(**values: Any) -> Job:
    values.setdefault("kind", JobKind.REFRESH_SERVER)
    values.setdefault("run_after", timezone.now())
    return Job.objects.create(**values)


def make_key(**values: Any) -> ApiKey:
    number = next(_numbers)
    values.setdefault("name", f"key-{number}")
    values.setdefault("prefix", f"{number:08}")
    values.setdefault("digest", "0" * 64)
    values.setdefault("policy", Policy.objects.get(slug="default"))
    return ApiKey.objects.create(**values)


def make_session(**values: Any) -> AgentSession:
    now = timezone.now()
    key = values.pop("key", None) or make_key()
    values.setdefault("policy", key.policy)
    values.setdefault("last_seen_at", now)
    values.setdefault("expires_at", now + timedelta(days=30))
    return AgentSession.objects.create(key=key, **values)


def make_event(session: AgentSession, **values: Any) -> SessionEvent:
    values.setdefault("at", timezone.now())
    values.setdefault("kind", EventKind.TURN)
    values.setdefault("turn", session.turn)
    return SessionEvent.objects.create(session=session, **{"tokens_full": 100, "tokens_sent": 10, **values})


def make_search(session: AgentSession, **values: Any) -> SearchEvent:
    values.setdefault("at", timezone.now())
    values.setdefault("outcome", SearchEventOutcome.MATCHED)
    values = {"turn": session.turn, "query": "create an issue", "form": "keywords", "took_us": 900, **values}
    return SearchEvent.objects.create(session=session, **values)


def make_call(*, key: ApiKey | None = None, **values: Any) -> Call:
    """A call of a tool that need not be there."""
    values.setdefault("at", timezone.now())
    values.setdefault("key_name", key.name if key else "gone")
    values = {
        "policy": "default",
        "client": "claude-code",
        "revision": "2026-07-28",
        "server": "github",
        "tool": "mcp__github__create_issue",
        "via": Via.CALL_TOOL,
        "outcome": CallOutcome.OK,
        "duration_ms": 240,
        "upstream_ms": 236,
        "request_bytes": 312,
        "result_bytes": 1840,
        **values,
    }
    return Call.objects.create(key=key, **values)


def make_gateway_process(**values: Any) -> GatewayProcess:
    now = timezone.now()
    values = {"process": f"node-{next(_numbers)}:1", "started_at": now, "seen_at": now, **values}
    return GatewayProcess.objects.create(**values)


def make_gateway_client(*, key: ApiKey | None = None, **values: Any) -> GatewayClient:
    now = timezone.now()
    values = {"name": f"client-{next(_numbers)}", "revision": "2026-07-28", "exposure": "search", **values}
    values = {"first_seen_at": now, "last_seen_at": now, **values}
    return GatewayClient.objects.create(key=key or make_key(), **values)


def make_lease(*, process: GatewayProcess | None = None, **values: Any) -> OpenLease:
    """A connection to a server that keys share; `key` says whose it is."""
    now = timezone.now()
    values = {"opened_at": now, "last_used_at": now, "protocol_version": "2025-11-25", **values}
    if "server" not in values:
        values["server"] = make_server(transport=Transport.HTTP, url="https://mcp.example.com/")
    return OpenLease.objects.create(process=process or make_gateway_process(), **values)


def make_upstream_state(*, server: Server, **values: Any) -> UpstreamState:
    """What a gateway process knows of the server; calls go through unless `breaker` says otherwise."""
    if "process" not in values:
        values["process"] = make_gateway_process()
    return UpstreamState.objects.create(server=server, **values)


def _definition_of(tool: Tool) -> Definition:
    return Definition.from_wire(tool.revisions.order_by("-number").values_list("definition", flat=True)[0])
