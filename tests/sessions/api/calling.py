"""Calls the REST API as an agent or an admin does."""

import json
from dataclasses import dataclass, field
from typing import Any

from django.test import Client

from catalog.access.actors import COMMAND_LINE
from catalog.models import ApiKey, Policy, Scope
from catalog.services import derived_state, keys
from tests.harness.rows import make_server, make_tool

ROOT = "/api/v1"


@dataclass(frozen=True)
class Agent:
    """One key and a client that sends it."""

    key: ApiKey
    text: str
    client: Client = field(default_factory=Client)

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """The answer, with `json()`; `headers` by their HTTP names, `_` for `-`."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        content: dict[str, Any] = {}
        if body is not None:
            content = {"data": json.dumps(body), "content_type": "application/json"}
        return self.client.generic(
            method, ROOT + path, headers={"Authorization": f"Bearer {self.text}", **sent}, **content
        )

    def get(self, path: str, **headers: str) -> Any:
        return self.call("GET", path, **headers)

    def read(self, path: str) -> Any:
        answer = self.get(path)
        assert answer.status_code == 200, answer.content
        return answer.json()

    def post(self, path: str, body: Any = None, *, status: int = 200) -> Any:
        answer = self.call("POST", path, {} if body is None else body)
        assert answer.status_code == status, answer.content
        return answer.json()

    def begin(self, **fields: Any) -> "Conversation":
        return Conversation(self, self.post("/sessions", fields, status=201)["id"])


@dataclass(frozen=True)
class Conversation:
    agent: Agent
    id: str

    @property
    def path(self) -> str:
        return f"/sessions/{self.id}"

    def state(self) -> Any:
        return self.agent.read(self.path)

    def tools(self, **options: str) -> Any:
        query = "&".join(f"{name}={value}" for name, value in options.items())
        return self.agent.read(f"{self.path}/tools?{query}")

    def do(self, what: str, **body: Any) -> Any:
        return self.agent.post(f"{self.path}/{what}", body)

    def search(self, query: str, **options: Any) -> Any:
        return self.do("search", query=query, **options)

    def snapshot(self) -> Any:
        return self.agent.post(f"{self.path}/snapshots", {}, status=201)


def make_agent(*, admin: bool = False, policy: Policy | None = None, **limits: Any) -> Agent:
    scope = Scope.ADMIN if admin else Scope.AGENT
    made = keys.create_key(name="tester", actor=COMMAND_LINE, policy=policy, scope=scope, **limits)
    return Agent(made.key, made.text)


def fill_catalog() -> None:
    """Three servers; under the default policy everything is deferred."""
    github, slack, files = (make_server(name=name) for name in ("github", "slack", "files"))
    schema = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
    make_tool(server=github, name="create_issue", description="Open a new issue.", input_schema=schema)
    make_tool(server=github, name="list_issues", description="Show the issues of a repository.")
    make_tool(server=github, name="merge_pull_request", description="Merge a pull request. Cannot be undone.")
    make_tool(server=slack, name="send_message", description="Post a message to a channel.")
    make_tool(server=files, name="read_file", description="Read a file of the workspace.")
    follow()


def follow() -> None:
    """What a worker does within two seconds of a change."""
    derived_state.bring_up_to_date()
