"""Fills an instance with attacks: every text that a server, an agent or a person can set carries markup.

Run inside an instance's shell; prints what it made, as a value for every parameter that a route may name.
"""

import json
from dataclasses import asdict

from django.contrib.auth.models import User
from django.utils import timezone

from catalog.domain.definitions import Definition
from catalog.models import Job, Policy, SavedQuery, Server, Tool, ToolTag
from catalog.models.changes import Subject
from catalog.models.jobs import JobKind, JobState
from catalog.models.model_support import ModelSupport
from catalog.services import derived_state, tools
from catalog.services.connection_tests import TestResult
from sessions.models import LoadedTool, SearchEvent, SessionEvent, Snapshot
from tests.harness.rows import (
    make_call,
    make_change,
    make_gateway_client,
    make_job,
    make_key,
    make_lease,
    make_run,
    make_server,
    make_session,
    make_upstream_state,
)

# Short, for columns of a hundred characters; `pwned` is what a test listens for.
MARKUP = "<img src=x onerror=pwned(1)>\"'><script>pwned(2)</script>"
LONG_MARKUP = (
    MARKUP
    + "<svg/onload=pwned(3)></textarea></title></style></script><script>pwned(4)</script>"
    + "<a href='javascript:pwned(5)'>x</a>[x](javascript:pwned(6)){{ 7*7 }}{% debug %}${7*7}"
    + "<b hx-get=/pwned hx-trigger=load>x</b><iframe srcdoc='<script>parent.pwned(7)</script>'></iframe>"
    + "<style>body{display:none}</style><base href=//evil.example/><meta http-equiv=refresh content=0;//evil>"
    + "\u202e\u200b\U000e0041\x1b[31m"
)
SCHEMA = {
    "type": "object",
    "title": LONG_MARKUP,
    "required": [MARKUP],
    "properties": {
        MARKUP: {
            "type": MARKUP,
            "description": LONG_MARKUP,
            "enum": [LONG_MARKUP, MARKUP],
            "default": LONG_MARKUP,
            "pattern": MARKUP,
            "items": {"$ref": MARKUP},
        }
    },
    MARKUP: {MARKUP: LONG_MARKUP},
}


def fill() -> dict[str, object]:
    server = make_server(
        name=MARKUP,
        transport="stdio",
        command=LONG_MARKUP,
        title=LONG_MARKUP[:200],
        description=LONG_MARKUP,
        instructions=LONG_MARKUP,
        version=MARKUP,
        failures=3,
        last_error_code="refused",
        last_error=LONG_MARKUP,
        stderr_tail=LONG_MARKUP,
        stale_since=timezone.now(),
    )
    make_server(name=f"{MARKUP} 2", transport="http", url="javascript:pwned(8)")
    tool = _make_tools(server)
    job = make_job(subject=server.pk, state="failed", error=LONG_MARKUP, finished_at=timezone.now())
    rejected = [{"name": LONG_MARKUP, "why": LONG_MARKUP}]
    make_run(
        server=server,
        job=job,
        error_code=MARKUP[:40],
        error=LONG_MARKUP,
        stderr_tail=LONG_MARKUP,
        rejected=rejected,
    )
    policy = Policy.objects.create(
        slug="hostile", description=LONG_MARKUP[:200], never_defer=[MARKUP], visible=["*", MARKUP]
    )
    change = make_change(
        actor=LONG_MARKUP[:200], name=MARKUP, before={MARKUP: LONG_MARKUP}, after={MARKUP: [LONG_MARKUP]}
    )
    make_change(actor=MARKUP, name=tool.qualified_name, subject=Subject.TOOL, after={MARKUP: LONG_MARKUP})
    User.objects.create_user(username=MARKUP, first_name=MARKUP[:150])
    derived_state.bring_up_to_date()
    return {
        "name": server.name,
        "qualified_name": tool.qualified_name,
        "slug": policy.slug,
        "change_id": change.pk,
        "job_id": _make_connection_test().pk,
        **_make_agent(policy, tool),
        **_make_gateway(server),
        "saved_id": SavedQuery.objects.create(
            policy=policy, query=LONG_MARKUP[:500], expected=[tool.qualified_name]
        ).pk,
        "model_id": ModelSupport.objects.create(name_pattern=MARKUP, provider="other").pk,
    }


def _make_connection_test() -> Job:
    """Of the admin, who looks at the pages."""
    found = TestResult(ok=False, error=LONG_MARKUP, stderr_tail=LONG_MARKUP, names=(LONG_MARKUP,))
    return make_job(
        kind=JobKind.TEST_SERVER,
        subject=User.objects.get(username="admin").pk,
        state=JobState.DONE,
        finished_at=timezone.now(),
        result=asdict(found),
    )


def _make_tools(server: Server) -> Tool:
    """Two, of which one has changed since it was first seen, so that there is a difference to show."""
    for description in (LONG_MARKUP, f"changed {LONG_MARKUP}"):
        definitions = [
            Definition(
                name=name,
                title=LONG_MARKUP,
                description=description,
                input_schema=SCHEMA,
                output_schema=SCHEMA,
                annotations={MARKUP: LONG_MARKUP, "title": LONG_MARKUP, "readOnlyHint": MARKUP},
                meta={MARKUP: LONG_MARKUP, "anthropic/searchHint": LONG_MARKUP},
            )
            for name in (MARKUP, f"{MARKUP} again")
        ]
        tools.store_definitions(server=server, definitions=definitions, now=timezone.now())
    tool = Tool.objects.get(server=server, name=MARKUP)
    Tool.objects.filter(pk=tool.pk).update(keywords=[MARKUP, LONG_MARKUP])
    ToolTag.objects.create(tool=tool, name=MARKUP[:40])
    return tool


def _make_gateway(server: Server) -> dict[str, object]:
    key = make_key(name=MARKUP)
    make_gateway_client(key=key, name=MARKUP, version=MARKUP, revision=MARKUP[:20])
    make_upstream_state(server=server, breaker="open", failures=5, error=LONG_MARKUP, refused={MARKUP: 3})
    call = make_call(
        key=key,
        key_name=MARKUP,
        client=MARKUP,
        revision=MARKUP[:20],
        server=MARKUP,
        tool=MARKUP[:64],
        outcome="upstream_failed",
        error=LONG_MARKUP,
        arguments=LONG_MARKUP,
        result=LONG_MARKUP,
    )
    lease = make_lease(server=server, key=key, protocol_version=MARKUP[:20])
    return {"call_id": call.pk, "lease_id": str(lease.pk)}


def _make_agent(policy: Policy, tool: Tool) -> dict[str, object]:
    key = make_key(name=MARKUP, policy=policy)
    session = make_session(key=key, external_id=LONG_MARKUP[:200], model=MARKUP, visible=["*", MARKUP])
    LoadedTool.objects.create(
        session=session, name=tool.qualified_name, position=1, loaded_turn=0, used_turn=0
    )
    Snapshot.objects.create(
        session=session, turn=1, search_tool_name=MARKUP, was_active=True, loaded=[[MARKUP, 1]]
    )
    now = timezone.now()
    for outcome in ("matched", "no_match"):
        SearchEvent.objects.create(
            session=session,
            at=now,
            turn=1,
            query=LONG_MARKUP,
            form="keywords",
            outcome=outcome,
            hits=[[MARKUP, 1.5]],
            took_us=9,
        )
    SessionEvent.objects.create(
        session=session,
        at=now,
        kind="unloaded",
        turn=1,
        by=LONG_MARKUP[:200],
        loaded=[MARKUP],
        unloaded=[MARKUP],
        tokens_full=9,
        tokens_sent=1,
    )
    return {"key_id": key.pk, "session_id": str(session.pk)}


def print_things() -> None:
    print(json.dumps(fill()))  # noqa: T201
