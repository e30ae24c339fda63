"""The OpenAPI document: complete, unchanged unless on purpose, and kept by every answer."""

import json
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from sessions.models import ApiKey
from tests.sessions.api.calling import Agent, fill_catalog, make_agent
from toolsearch_site.api import api
from toolsearch_site.wsgi import application

SNAPSHOT = Path(__file__).parents[2] / "openapi.json"
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
schema = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", application)


def read_document() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(api.get_openapi_schema(path_prefix="/api/v1/")))
    return document


def operations() -> list[tuple[str, str]]:
    return [(method, path) for path, methods in read_document()["paths"].items() for method in methods]


def test_document_changes_only_on_purpose() -> None:
    """After a change that is meant: write the new document over `tests/openapi.json`."""
    assert read_document() == json.loads(SNAPSHOT.read_text())


@pytest.mark.parametrize(("method", "path"), operations())
def test_every_operation_has_an_id_a_summary_and_an_example(method: str, path: str) -> None:
    document = read_document()
    operation = document["paths"][path][method]
    assert operation["operationId"]
    assert operation["summary"]
    parts = [answer for status, answer in operation["responses"].items() if status.startswith("2")]
    parts += [operation["requestBody"]] if "requestBody" in operation else []
    for part in parts:
        for content in part.get("content", {}).values():
            assert has_example(content["schema"], document), (method, path)


def has_example(found: dict[str, Any], document: dict[str, Any]) -> bool:
    if "$ref" in found:
        found = document["components"]["schemas"][found["$ref"].rsplit("/", 1)[1]]
    fields = found.get("properties", {}).values()
    return (
        "example" in found or "examples" in found or (bool(fields) and all("examples" in f for f in fields))
    )


def real_parameters(agent: Agent) -> dict[str, object]:
    """Names and ids of things that are there, so that calls get past 404."""
    session = agent.begin()
    session.search("create issue")
    return {
        "session_id": session.id,
        "slug": "default",
        "name": "github",
        "key_id": ApiKey.objects.get(pk=agent.key.pk).pk,
    }


@pytest.fixture
def caller(db: None, request: pytest.FixtureRequest) -> Agent:
    fill_catalog()
    return make_agent(admin=request.param == "admin")


@pytest.mark.slow
@pytest.mark.parametrize("exists", [True, False], ids=["real", "made-up"])
@pytest.mark.parametrize("caller", ["admin", "agent"], indirect=True)
@schema.parametrize()
@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_every_answer_is_documented_and_none_is_a_500(
    case: schemathesis.Case, caller: Agent, exists: bool
) -> None:
    if exists and case.path_parameters:
        known = real_parameters(caller)
        case.path_parameters = {name: known[name] for name in case.path_parameters if name in known}
    answer = case.call(headers={"Authorization": f"Bearer {caller.text}"})
    case.validate_response(answer, checks=CHECKS)
