"""Tools as files: what the filter matches, harmless in a spreadsheet."""

import csv
import json
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from catalog.access.roles import Role
from catalog.models import ToolTag
from catalog.services import decisions
from tests.harness.pages import signed_in
from tests.harness.rows import make_server, make_tool

pytestmark = pytest.mark.django_db


def body_of(response: Any) -> str:
    return b"".join(response.streaming_content).decode()


def test_csv_obeys_the_filter_and_tells_the_decision() -> None:
    tool = make_tool(server=make_server(name="github"), name="read", description='Reads, "quoted"\nlines.')
    make_tool(server=make_server(name="slack"), name="send")
    ToolTag.objects.create(tool=tool, name="docs")
    ToolTag.objects.create(tool=tool, name="team")
    decisions.bring_up_to_date()
    response = signed_in(Role.VIEWER).get("/tools.csv?server=github")
    assert response.headers["Content-Disposition"] == 'attachment; filename="tools.csv"'
    (row,) = csv.DictReader(body_of(response).splitlines(keepends=True))
    assert (row["name"], row["server"], row["tool"]) == ("mcp__github__read", "github", "read")
    assert row["description"] == 'Reads, "quoted"\nlines.'
    assert (row["decision"], row["reason"], row["tags"]) == ("defer", "mode_always", "docs, team")


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\t", "\r"])
def test_csv_cell_is_no_formula(sign: str) -> None:
    make_tool(name="read", description=f"{sign}cmd|' /C calc'!A0", title="5 = 5")
    (row,) = csv.DictReader(body_of(signed_in(Role.VIEWER).get("/tools.csv")).splitlines(keepends=True))
    assert row["description"].startswith(f"'{sign}")
    assert row["title"] == "5 = 5"


def test_json_has_the_same_rows() -> None:
    make_tool(server=make_server(name="github"), name="read", description="=1", hidden=True)
    make_tool(name="other")
    client = signed_in(Role.VIEWER)
    (row,) = json.loads(body_of(client.get("/tools.json?state=hidden")))
    assert (row["name"], row["description"], row["tags"]) == ("mcp__github__read", "=1", [])
    assert (row["state"], row["decision"]) == ("hidden", "")
    assert len(json.loads(body_of(client.get("/tools.json?state=any")))) == 2
    assert json.loads(body_of(client.get("/tools.json?q=nothing"))) == []


@pytest.mark.parametrize("address", ["/tools.csv", "/tools.json"])
def test_costs_the_same_queries_for_many(
    address: str, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    server = make_server()
    for number in range(5):
        make_tool(server=server, name=f"tool_{number}")
    client = signed_in(Role.VIEWER)
    with django_assert_num_queries(7):
        body_of(client.get(address))


@pytest.mark.parametrize("address", ["/tools.csv", "/tools.json"])
def test_needs_sign_in_and_a_role_and_only_reads(client: Client, address: str) -> None:
    assert client.get(address).status_code == 302
    assert signed_in(Role.NONE).get(address).status_code == 403
    assert signed_in(Role.ADMIN).post(address).status_code == 405
