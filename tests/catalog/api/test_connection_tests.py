"""`POST /servers/{name}/test`: the body over what is stored, asked by a worker, and nothing changed."""

from typing import Any

import pytest

from catalog.api import connection_tests as api
from catalog.domain.connection import Connection, FailureCode, ServerListing, UpstreamFailure
from catalog.models import Change, Job, Server
from catalog.models.jobs import JobKind
from catalog.services import connection_tests, jobs
from catalog.services.connections import read_connection
from tests.harness.rows import make_server
from tests.sessions.api.calling import Agent, make_agent

pytestmark = pytest.mark.django_db

CANARY = "canary-5577aa"
REMOTE = {
    "name": "web",
    "url": "https://mcp.example.com/mcp",
    "headers": {"Authorization": f"Bearer {CANARY}"},
}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Connection]:
    """What a worker was asked to reach. It runs whenever the call waits, and a server refuses a bad token."""
    seen: list[Connection] = []

    def list_tools(connection: Connection, **_: Any) -> ServerListing:
        seen.append(connection)
        if connection.headers.get("Authorization") == "wrong":
            raise UpstreamFailure(FailureCode.UNAUTHORIZED, "The server refused the token (401)")
        return ServerListing(({"name": "read"}, {"name": "write"}))

    def run() -> None:
        handlers = {JobKind.TEST_SERVER: lambda job: connection_tests.run_test(job, list_tools=list_tools)}
        for pk in Job.objects.open().filter(kind=JobKind.TEST_SERVER).values_list("pk", flat=True):
            jobs.run_job(job_id=pk, holder="worker", handlers=handlers)

    monkeypatch.setattr(connection_tests, "pause", run)
    return seen


@pytest.fixture
def admin() -> Agent:
    made = make_agent(admin=True)
    made.post("/servers", REMOTE, status=201)
    return made


def test_what_is_stored_is_tested_with_its_secrets(admin: Agent, asked: list[Connection]) -> None:
    found = admin.post("/servers/web/test", {})
    assert (found["ok"], found["tools"], found["error"]) == (True, 2, "")
    assert found["names"] == ["read", "write"]
    assert found["took_ms"] >= 0
    assert asked == [read_connection(Server.objects.get())]
    assert CANARY not in str(found)


def test_body_is_tested_over_what_is_stored_and_changes_nothing(
    admin: Agent, asked: list[Connection]
) -> None:
    before, recorded = Server.objects.values().get(), Change.objects.count()
    found = admin.post("/servers/web/test", {"headers": {"Authorization": "wrong"}})
    assert (found["ok"], found["tools"], found["error"]) == (False, 0, "The server refused the token (401)")
    assert asked[0].url == REMOTE["url"]
    assert Server.objects.values().get() == before
    assert Change.objects.count() == recorded


def test_stored_secret_is_not_sent_to_another_address(admin: Agent, asked: list[Connection]) -> None:
    answer = admin.call("POST", "/servers/web/test", {"url": "https://elsewhere.example/mcp"})
    assert answer.status_code == 422
    assert "headers.Authorization" in str(answer.json()["errors"])
    assert asked == []


def test_new_name_needs_a_complete_body(admin: Agent, asked: list[Connection]) -> None:
    assert admin.call("POST", "/servers/new/test", {}).status_code == 404
    assert admin.post("/servers/new/test", {"url": "https://new.example/mcp"})["ok"]
    assert not Server.objects.filter(name="new").exists()


def test_what_cannot_be_asked_is_refused(admin: Agent, asked: list[Connection]) -> None:
    make_server(name="snap")
    assert admin.call("POST", "/servers/snap/test", {}).status_code == 409
    assert admin.call("POST", "/servers/web/test", {"tools": []}).status_code == 422
    assert admin.call("POST", "/servers/web/test", {"headers": {"Host": "x"}}).status_code == 422
    assert asked == []


def test_few_calls_wait_at_once(
    admin: Agent, asked: list[Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(api.WAITING_AT_ONCE):
        assert api._places.acquire(blocking=False)
    try:
        assert admin.call("POST", "/servers/web/test", {}).status_code == 503
    finally:
        for _ in range(api.WAITING_AT_ONCE):
            api._places.release()
    assert not Job.objects.filter(kind=JobKind.TEST_SERVER).exists()
    assert admin.post("/servers/web/test", {})["ok"]


def test_everything_that_was_given_can_be_changed(admin: Agent) -> None:
    changed = {"description": "Issues and code.", "timeoutSeconds": 90, "kind": "plugin"}
    answer = admin.call("PATCH", "/servers/web", changed).json()
    assert (answer["description"], answer["kind"]) == ("Issues and code.", "plugin")
    assert answer["settings"]["timeoutSeconds"] == 90
    assert read_connection(Server.objects.get()).headers == REMOTE["headers"]
    answer = admin.call("PATCH", "/servers/web", {"timeoutSeconds": None}).json()
    assert answer["settings"]["timeoutSeconds"] is None
    local = {"name": "local", "command": "npx", "args": ["-y", "x"], "cwd": "/srv", "env": {"A": CANARY}}
    admin.post("/servers", local, status=201)
    assert admin.read("/servers/local")["settings"]["cwd"] == "/srv"
    moved = admin.call("PATCH", "/servers/local", {"cwd": "/tmp"})
    assert moved.status_code == 422
    assert "env.A" in str(moved.json()["errors"])
