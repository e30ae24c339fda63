"""`ETag` and `If-Match`: an edit of what has changed since it was read is refused, and told what changed."""

from collections.abc import Callable
from typing import Any

import pytest

from catalog.access.actors import COMMAND_LINE
from catalog.domain.choices import Loading
from catalog.models import ModelSupport, Policy, Server, Tool
from catalog.models.model_support import Provider
from catalog.services import bulk, model_support, policies, servers, tool_settings
from tests.sessions.api.calling import Agent, fill_catalog, follow, make_agent

pytestmark = pytest.mark.django_db

TOOL = "/tools/mcp__github__create_issue"
SECRET = "sk-not-to-be-told"


@pytest.fixture(autouse=True)
def filled(db: None) -> None:
    fill_catalog()
    ModelSupport.objects.all().delete()
    model_support.save_model(
        name_pattern="m*",
        provider=Provider.OTHER,
        hosted_search=False,
        context_window=None,
        actor=COMMAND_LINE,
    )


@pytest.fixture
def admin() -> Agent:
    made = make_agent(admin=True)
    entry = {"name": "web", "url": "https://mcp.example.com/mcp", "headers": {"Authorization": SECRET}}
    made.post("/servers", entry, status=201)
    return made


def model_path() -> str:
    return f"/models/{ModelSupport.objects.get().pk}"


PATHS: dict[str, Callable[[], str]] = {
    "policy": lambda: "/policies/default",
    "tool": lambda: TOOL,
    "server": lambda: "/servers/web",
    "model": model_path,
}
# What somebody else changes, what we then change, and how each reads.
EDITS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "policy": ({"quarantine": "new_and_changed"}, {"max_results": 7}),
    "tool": ({"tags": ["docs"]}, {"loading": "always"}),
    "server": ({"refreshIntervalSeconds": 60}, {"deferLoading": True}),
    "model": ({"context_window": 1000}, {"hosted_search": True}),
}

every_subject = pytest.mark.parametrize("subject", PATHS)


def tag_of(admin: Agent, path: str) -> str:
    tag: str = admin.get(path).headers["ETag"]
    assert tag.startswith('"')
    return tag


@every_subject
def test_edit_of_what_was_read_is_made_and_gives_the_next_tag(admin: Agent, subject: str) -> None:
    path, (theirs, ours) = PATHS[subject](), EDITS[subject]
    first = admin.call("PATCH", path, theirs, If_Match=tag_of(admin, path))
    assert first.status_code == 200, first.content
    second = admin.call("PATCH", path, ours, If_Match=first.headers["ETag"])
    assert second.status_code == 200, second.content
    assert second.headers["ETag"] == tag_of(admin, path) != first.headers["ETag"]


@every_subject
def test_outdated_edit_changes_nothing_and_is_told_what_changed(admin: Agent, subject: str) -> None:
    path, (theirs, ours) = PATHS[subject](), EDITS[subject]
    tag = tag_of(admin, path)
    assert admin.call("PATCH", path, theirs).status_code == 200
    before = admin.read(path)
    refused = admin.call("PATCH", path, ours, If_Match=tag)
    assert refused.status_code == 412
    assert refused.headers["Content-Type"] == "application/problem+json"
    problem = refused.json()
    ((field, value),) = theirs.items()
    assert [(one["field"], one["value"], one["by"]) for one in problem["changed"]] == [
        (field, value, f"key tester #{admin.key.pk}")
    ]
    assert problem["changed"][0]["at"]
    assert field in problem["detail"]
    assert (problem["status"], problem["title"]) == (412, "Precondition failed")
    assert admin.read(path) == before
    assert admin.call("PATCH", path, ours, If_Match=refused.headers["ETag"]).status_code == 200


@every_subject
def test_without_it_the_given_fields_are_written_and_the_others_left(admin: Agent, subject: str) -> None:
    path, (theirs, ours) = PATHS[subject](), EDITS[subject]
    for body in (theirs, ours):
        assert admin.call("PATCH", path, body).status_code == 200
    answer = admin.read(path)
    answer |= answer.get("settings") or answer.get("fields") or {}
    assert {field: answer[field] for field in (*theirs, *ours)} == {**theirs, **ours}


@every_subject
def test_forms_of_the_header(admin: Agent, subject: str) -> None:
    path, (_, ours) = PATHS[subject](), EDITS[subject]
    tag = tag_of(admin, path)
    for wrong in (f"W/{tag}", '"x"', '""', "", "x", tag.strip('"'), '"é"'):
        assert admin.call("PATCH", path, ours, If_Match=wrong).status_code == 412, wrong
    unquoted = admin.call("PATCH", path, ours, If_Match=tag.strip('"')).json()
    assert "in double quotes" in unquoted["detail"]
    assert admin.call("PATCH", path, ours, If_Match=f'"x", {tag}').status_code == 200
    assert admin.call("PATCH", path, ours, If_Match="*").status_code == 200


def test_secret_that_changed_is_named_and_not_told(admin: Agent) -> None:
    tag = tag_of(admin, "/servers/web")
    changed = {"headers": {"Authorization": f"{SECRET}-new"}}
    assert admin.call("PATCH", "/servers/web", changed).status_code == 200
    refused = admin.call("PATCH", "/servers/web", {"enabled": False}, If_Match=tag)
    assert refused.status_code == 412
    (told,) = refused.json()["changed"]
    assert (told["field"], told["by"]) == ("headers", f"key tester #{admin.key.pk}")
    assert "value" not in told
    assert SECRET not in refused.content.decode()


def test_what_is_no_setting_leaves_the_tag_alone(admin: Agent) -> None:
    paths = [path() for path in PATHS.values()]
    before = [tag_of(admin, path) for path in paths]
    follow()
    Server.objects.update(failures=3, last_error="no answer", title="T", instructions="Do this.")
    Tool.objects.update(description="Another text", facts_version=10)
    assert [tag_of(admin, path) for path in paths] == before


def test_change_of_many_tools_tells_its_author(admin: Agent) -> None:
    tag = tag_of(admin, TOOL)
    tool_ids = list(Tool.objects.values_list("pk", flat=True))
    bulk.change_tools(tool_ids=tool_ids, edit=bulk.BulkEdit(loading=Loading.DEFER), actor=COMMAND_LINE)
    refused = admin.call("PATCH", TOOL, {"keywords": ["x"]}, If_Match=tag).json()
    assert [(one["field"], one["value"], one["by"]) for one in refused["changed"]] == [
        ("loading", "defer", "command line")
    ]


def test_roll_back_and_put_take_it_too(admin: Agent) -> None:
    policy_tag, path = tag_of(admin, "/policies/default"), model_path()
    row_tag = tag_of(admin, path)
    policies.change_policy(
        policy=Policy.objects.get(slug="default"), changed={"mode": "off"}, actor=COMMAND_LINE
    )
    refused = admin.call("POST", "/policies/default/rollback", {"version": 1}, If_Match=policy_tag)
    assert refused.status_code == 412
    admin.call("PATCH", path, {"context_window": 5})
    body = {"name_pattern": "m*", "provider": "other"}
    assert admin.call("PUT", path, body, If_Match=row_tag).status_code == 412
    assert ModelSupport.objects.get().context_window == 5
    assert Policy.objects.get(slug="default").mode == "off"


def test_patch_of_a_model_takes_its_window_away_and_nothing_else(admin: Agent) -> None:
    path = model_path()
    admin.call("PATCH", path, {"context_window": 5})
    body = {"name_pattern": None, "provider": None, "hosted_search": None, "context_window": None}
    assert admin.call("PATCH", path, body).status_code == 200
    assert model_support.describe_model(ModelSupport.objects.get())["name_pattern"] == "m*"
    assert ModelSupport.objects.get().context_window is None
    assert admin.call("PATCH", path, {"pattern": "x"}).status_code == 422
    assert admin.call("PATCH", "/models/999999", {}).status_code == 404


def test_agent_gets_the_same_tag_and_may_not_edit(admin: Agent) -> None:
    agent = make_agent()
    assert agent.get(TOOL).headers["ETag"] == tag_of(admin, TOOL)
    assert agent.call("PATCH", model_path(), {"context_window": 1}).status_code == 403


def test_edits_made_beside_the_api_count(admin: Agent) -> None:
    tags = {subject: tag_of(admin, path()) for subject, path in PATHS.items()}
    server = Server.objects.get(name="web")
    servers.set_defer_loading(server=server, defer_loading=False, actor=COMMAND_LINE)
    tool = Tool.objects.get(qualified_name=TOOL.removeprefix("/tools/"))
    tool_settings.change_tool(tool=tool, actor=COMMAND_LINE, hidden=True)
    for subject in ("server", "tool"):
        answer = admin.call("PATCH", PATHS[subject](), {}, If_Match=tags[subject])
        assert answer.status_code == 412, subject
