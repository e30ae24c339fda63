"""Bodies of REST calls: only known fields, each of its own type.

The table is made from the OpenAPI document, so that a new operation is in it from the start.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from jsonschema.validators import extend
from pytest_django import Settings

from catalog.domain.policy import Policy as DomainPolicy
from catalog.models import ModelSupport, Server
from tests.harness.rows import make_server
from tests.sessions.api.calling import Agent, fill_catalog, make_agent
from tests.sessions.api.test_openapi import read_document, resolve

pytestmark = pytest.mark.django_db

CREATE = "mcp__github__create_issue"
# Whose whole body is a document of another kind; each is tried by itself, below or with the dialects.
FREE_FORM = {"import_config", "create_policy", "change_policy"}
# A model may have written its body.
TAKES_UNKNOWN_FIELDS = {"search"}
CANDIDATES: tuple[Any, ...] = (
    "false",
    "5",
    "?",
    5,
    0,
    5.0,
    5.5,
    True,
    [],
    [5],
    [True],
    ["?"],
    [["x"]],
    [{"name": 5}],
    [{"name": "x", "shouldDefer": "false"}],
    {},
    {"x": 5},
    {"x": "true"},
    {"x": ["y"]},
)
WRONG_SOMEWHERE: tuple[Any, ...] = ("false", "5", 5, 5.0, True, ["?"], {})
types = Draft202012Validator.TYPE_CHECKER.redefine_many(
    {
        "integer": lambda _, value: type(value) is int,
        "number": lambda _, value: type(value) in (int, float),
    }
)
Strict = extend(Draft202012Validator, type_checker=types)


@cache
def bodies() -> dict[str, tuple[str, str, dict[str, Any]]]:
    """Method, path and schema of each operation that takes a body, by its id."""
    return {
        operation["operationId"]: (method.upper(), path, resolve(schema_of(operation)))
        for path, methods in read_document()["paths"].items()
        for method, operation in methods.items()
        if "requestBody" in operation
    }


def schema_of(operation: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = operation["requestBody"]["content"]["application/json"]["schema"]
    return schema


def is_taken(schema: dict[str, Any], value: object) -> bool:
    return bool(Strict({**schema, "components": read_document()["components"]}).is_valid(value))


def wrong_values() -> Iterator[tuple[str, str, Any]]:
    for name, (_, _, schema) in bodies().items():
        for field, described in schema.get("properties", {}).items():
            for value in CANDIDATES:
                if not is_taken(described, value) and not is_read_only(name, field, value):
                    yield name, field, value


def is_read_only(operation: str, field: str, value: object) -> bool:
    """A server's `tools` are definitions where they are sent, and a number where they are read."""
    return (operation, field) in {
        ("create_server", "tools"),
        ("change_server", "tools"),
        ("test_server", "tools"),
    } and type(value) is int


@pytest.fixture
def admin() -> Agent:
    fill_catalog()
    return make_agent(admin=True)


def send(admin: Agent, operation: str, body: dict[str, Any] | None) -> Any:
    method, path, _ = bodies()[operation]
    things = {
        "session_id": admin.begin().id if "{session_id}" in path else "",
        "slug": "default",
        "name": CREATE if "/tools/" in path else "github",
        "model_id": ModelSupport.objects.values_list("pk", flat=True)[0],
    }
    return admin.call(method, path.removeprefix("/api/v1").format(**things), body)


def told(answer: Any) -> list[str]:
    """The last step of each place that a refusal names."""
    assert answer.status_code == 422, answer.content
    return [error["place"].rsplit(".", 1)[-1] for error in answer.json()["errors"]]


def test_table_has_every_operation_that_takes_a_body() -> None:
    assert len(bodies()) > 12
    assert len(list(wrong_values())) > 300
    assert bodies().keys() >= FREE_FORM | TAKES_UNKNOWN_FIELDS
    changing = {
        operation["operationId"]
        for methods in read_document()["paths"].values()
        for method, operation in methods.items()
        if method in {"post", "put", "patch"}
    }
    assert changing == bodies().keys()


@pytest.mark.parametrize("operation", sorted(bodies()))
def test_examples_are_taken(admin: Agent, operation: str) -> None:
    """What is refused below is refused for its one mistake."""
    _, _, schema = bodies()[operation]
    example = schema["example"] if "example" in schema else schema["examples"][0]
    assert send(admin, operation, example).status_code != 422


@pytest.mark.parametrize("operation", sorted(bodies().keys() - FREE_FORM - TAKES_UNKNOWN_FIELDS))
def test_unknown_field_is_refused_by_name(admin: Agent, operation: str) -> None:
    example = bodies()[operation][2]["example"]
    assert told(send(admin, operation, {**example, "visable": ["x"]})) == ["visable"]


@pytest.mark.parametrize("body", [None, {}])
@pytest.mark.parametrize(
    ("operation", "status"),
    [("reset_session", 200), ("compact_session", 200), ("take_snapshot", 201), ("refresh_server", 202)],
)
def test_call_that_needs_no_body_takes_none_and_an_empty_one(
    admin: Agent, operation: str, status: int, body: dict[str, Any] | None
) -> None:
    Server.objects.filter(name="github").update(transport="http", url="https://mcp.test/")
    assert send(admin, operation, body).status_code == status


def test_search_takes_what_a_model_may_have_written(admin: Agent) -> None:
    assert send(admin, "search", {"query": "issue", "reason": "to find one"}).status_code == 200


def test_value_of_another_type_is_refused_by_name(admin: Agent) -> None:
    """One test for all of them: a world for each would take a minute."""
    session = admin.begin().id
    taken = []
    for operation, field, value in wrong_values():
        method, path, schema = bodies()[operation]
        things = {"session_id": session, "slug": "default", "name": "github", "model_id": 1}
        body = {**schema["example"], field: value}
        answer = admin.call(method, path.removeprefix("/api/v1").format(**things), body)
        places = [one["place"] for one in answer.json().get("errors", ())]
        if answer.status_code != 422 or not any(field in place.split(".") for place in places):
            taken.append((operation, field, value, answer.status_code, places))
    assert taken == []


@pytest.mark.parametrize("operation", ["create_policy", "change_policy", "preview_policy"])
def test_policy_takes_its_fields_each_of_its_type(admin: Agent, operation: str) -> None:
    base = {"slug": "coding"} if operation == "create_policy" else {}
    assert told(send(admin, operation, {**base, "treshold": 5})) == ["treshold"]
    fields = DomainPolicy().to_mapping()
    for field, default in fields.items():
        kind = type(default) if default is not None else list if field == "visible" else int
        for value in WRONG_SOMEWHERE:
            is_number = field in {"threshold", "score_cutoff"} and type(value) in (int, float)
            is_duration = field == "session_ttl" and type(value) is int
            is_text = type(value) is kind is str
            if is_number or is_duration or is_text or type(value) is kind:
                continue
            assert told(send(admin, operation, {**base, field: value})) == [field], (field, value)


def test_whole_number_will_do_for_a_fraction(admin: Agent) -> None:
    assert send(admin, "change_policy", {"threshold": 5, "score_cutoff": 1}).status_code == 200


class TestWhatAGetGivesCanBeSentBack:
    def test_server(self, admin: Agent) -> None:
        headers = {"Authorization": "Bearer s3cr3t-value-0123456789"}
        admin.post("/servers", {"name": "api", "url": "https://mcp.test/", "headers": headers}, status=201)
        before, sealed = admin.read("/servers/api"), Server.objects.get(name="api").sealed
        answer = admin.call("PATCH", "/servers/api", before)
        assert (answer.status_code, answer.json()) == (200, before)
        assert Server.objects.get(name="api").sealed == sealed

    def test_server_of_every_transport(self, admin: Agent) -> None:
        make_server(name="command", transport="stdio", command="npx", url="")
        for name in ("github", "command"):
            before = admin.read(f"/servers/{name}")
            answer = admin.call("PATCH", f"/servers/{name}", before)
            assert (answer.status_code, answer.json()) == (200, before), answer.content

    def test_server_that_runs_a_command_where_commands_are_turned_off(
        self, admin: Agent, settings: Settings
    ) -> None:
        settings.STDIO_ENABLED = False
        make_server(name="command", transport="stdio", command="npx", url="")
        before = admin.read("/servers/command")
        answer = admin.call("PATCH", "/servers/command", {**before, "deferLoading": True})
        assert (answer.status_code, answer.json()) == (200, {**before, "deferLoading": True}), answer.content
        assert admin.call("PATCH", "/servers/command", {"args": ["-y"]}).status_code == 422

    def test_settings_of_a_server_are_changed_where_they_are_read(self, admin: Agent) -> None:
        admin.post("/servers", {"name": "api", "url": "https://mcp.test/"}, status=201)
        read = admin.read("/servers/api")
        read["settings"] |= {"url": "https://other.test/", "refreshIntervalSeconds": 60}
        settings = admin.call("PATCH", "/servers/api", read).json()["settings"]
        assert (settings["url"], settings["refreshIntervalSeconds"]) == ("https://other.test/", 60)
        twice = {"url": "https://third.test/", "settings": {"url": "https://other.test/"}}
        assert told(admin.call("PATCH", "/servers/api", twice)) == ["url"]
        assert told(admin.call("PATCH", "/servers/api", {"settings": {"ulr": "x"}})) == ["ulr"]

    def test_server_keeps_its_name(self, admin: Agent) -> None:
        assert told(admin.call("PATCH", "/servers/github", {"name": "gitlab"})) == ["name"]

    def test_tool(self, admin: Agent) -> None:
        before = admin.read(f"/tools/{CREATE}")
        answer = admin.call("PATCH", f"/tools/{CREATE}", {**before, "loading": "always"})
        assert answer.status_code == 200
        assert answer.json() == {**before, "loading": "always"}

    def test_policy(self, admin: Agent) -> None:
        before = admin.read("/policies/default")
        assert admin.call("PATCH", "/policies/default", before).json() == before
        changed = {**before, "fields": {**before["fields"], "max_results": 7}}
        after = admin.call("PATCH", "/policies/default", changed).json()
        assert (after["version"], after["fields"]["max_results"]) == (before["version"] + 1, 7)
        assert admin.call("PATCH", "/policies/default", after["fields"]).json() == after
        assert told(admin.call("PATCH", "/policies/default", {"fields": {"treshold": 5}})) == ["treshold"]
        assert told(admin.call("PATCH", "/policies/default", {"fields": 5})) == ["fields"]
        twice = {"mode": "off", "fields": {"mode": "auto"}}
        assert told(admin.call("PATCH", "/policies/default", twice)) == ["mode"]

    def test_model(self, admin: Agent) -> None:
        row = admin.read("/models")["items"][0]
        for method in ("PUT", "PATCH"):
            answer = admin.call(method, f"/models/{row['id']}", admin.read(f"/models/{row['id']}"))
            assert (answer.status_code, answer.json()) == (200, row)

    def test_session(self, admin: Agent) -> None:
        session = admin.begin(model="claude-opus-4-5", visible=["github/*"])
        before = session.state()
        after = admin.call("PATCH", session.path, before).json()
        moving = {"version", "last_seen_at", "expires_at"}
        assert {key: before[key] for key in before.keys() - moving} == {
            key: after[key] for key in after.keys() - moving
        }


class TestPreview:
    """It takes what PATCH takes, and the whole proposal as before."""

    @pytest.mark.parametrize("change", [{"mode": "off"}, {"policy": {"mode": "off"}}])
    def test_both_shapes_say_the_same(self, admin: Agent, change: dict[str, Any]) -> None:
        told_of = admin.post("/policies/default/preview", change)
        assert told_of["active"] is False
        assert len(told_of["flips"]) == 5

    def test_fields_go_together_with_servers_and_tools(self, admin: Agent) -> None:
        proposal = {"never_defer": ["slack/*"], "servers": {"files": False}, "tools": {CREATE: "always"}}
        told_of = admin.post("/policies/default/preview", proposal)
        assert [flip["after"]["reason"] for flip in told_of["flips"]] == [
            "server_load",
            "tool_always",
            "never_defer",
        ]

    def test_policy_as_it_was_read_flips_nothing(self, admin: Agent) -> None:
        read = admin.read("/policies/default")
        assert admin.post("/policies/default/preview", read)["flips"] == []

    def test_field_given_in_both_shapes_is_refused(self, admin: Agent) -> None:
        twice = {"mode": "off", "policy": {"mode": "auto"}}
        assert told(admin.call("POST", "/policies/default/preview", twice)) == ["mode"]
