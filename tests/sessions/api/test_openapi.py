"""The OpenAPI document: complete, unchanged unless on purpose, and kept by every answer."""

import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from django.test import Client
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from catalog.models import ModelSupport
from tests.harness.pages import broken_rules, text_of
from tests.sessions.api.calling import Agent, fill_catalog, make_agent
from toolsearch_site.api.mount import api
from toolsearch_site.wsgi import application

SNAPSHOT = Path(__file__).parents[2] / "openapi.json"
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
schema = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", application)


@cache
def read_document() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(api.get_openapi_schema(path_prefix="/api/v1/")))
    return document


def operations() -> list[tuple[str, str]]:
    return [(method, path) for path, methods in read_document()["paths"].items() for method in methods]


def test_document_changes_only_on_purpose() -> None:
    """After a change that is meant: write the new document over `tests/openapi.json`."""
    assert read_document() == json.loads(SNAPSHOT.read_text())


def test_interactive_documents_come_from_our_own_files() -> None:
    page = Client().get("/api/v1/docs")
    assert page.status_code == 200
    assert broken_rules(page) == []
    assert "swagger-ui-bundle.js" in text_of(page)


@pytest.mark.parametrize(("method", "path"), operations())
def test_every_operation_has_an_id_a_summary_and_an_example(method: str, path: str) -> None:
    operation = read_document()["paths"][path][method]
    assert operation["operationId"]
    assert operation["summary"]
    parts = [answer for status, answer in operation["responses"].items() if status.startswith("2")]
    parts += [operation["requestBody"]] if "requestBody" in operation else []
    for part in parts:
        for content in part.get("content", {}).values():
            assert has_example(content["schema"]), (method, path)


def resolve(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema itself, also where it stands elsewhere or has a default beside it."""
    [named] = schema.get("allOf", [schema])
    if "$ref" not in named:
        return schema
    found: dict[str, Any] = read_document()["components"]["schemas"][named["$ref"].rsplit("/", 1)[1]]
    return found


def has_example(schema: dict[str, Any]) -> bool:
    found = resolve(schema)
    fields = found.get("properties", {}).values()
    return (
        "example" in found or "examples" in found or (bool(fields) and all("examples" in f for f in fields))
    )


@dataclass(frozen=True)
class World:
    """A caller, and names and ids of things that are there: so that calls get past 404."""

    caller: Agent
    known: dict[str, object]


@pytest.fixture
def world(db: None, request: pytest.FixtureRequest) -> World:
    fill_catalog()
    caller = make_agent(admin=request.param == "admin")
    session = caller.begin()
    session.search("create issue")
    known = {
        "session_id": session.id,
        "slug": "default",
        "name": "github",
        "key_id": make_agent().key.pk,
        "model_id": ModelSupport.objects.values_list("pk", flat=True)[0],
    }
    return World(caller, known)


@pytest.fixture
def kept_connection(world: World) -> Iterator[None]:
    """What Django's own test client does: a request's end must not close the connection the test is on."""
    ends = (request_started, request_finished)
    for end in ends:
        end.disconnect(close_old_connections)
    yield
    for end in ends:
        end.connect(close_old_connections)


@pytest.mark.usefixtures("kept_connection")
@pytest.mark.slow
@pytest.mark.parametrize("world", ["admin", "agent"], indirect=True)
@schema.parametrize()
@settings(max_examples=6, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_every_answer_is_documented_and_none_is_a_500(case: Any, world: World) -> None:
    """Half of the calls are about things that are there, the others about whatever was made up."""
    if case.path_parameters and zlib.crc32(str(case.path_parameters).encode()) % 2:
        case.path_parameters = {name: world.known[name] for name in case.path_parameters}
    headers = {"Authorization": f"Bearer {world.caller.text}", "Accept-Encoding": "identity"}
    case.validate_response(case.call(headers=headers), checks=CHECKS)
