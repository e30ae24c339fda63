"""An instance that loaded the demo before it was marked gets the marks, and nothing of its own does."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from catalog.models import SavedQuery, Server
from tests.toolsearch_site.rules.test_upgrade import go_to, go_to_the_present, managers

BEFORE: list[tuple[str, str | None]] = [("catalog", "0013_move_key_content_type")]


def add_server(catalog: dict[str, Any], name: str, *, actor: str = "toolsearch", **values: Any) -> Any:
    values = {"transport": "snapshot", **values}
    server = catalog["Server"].create(name=name, **values)
    catalog["Change"].create(actor=actor, subject="server", name=name, action="created", after={"a": 1})
    return server


def add_tool(catalog: dict[str, Any], server: Any, *, later: timedelta) -> None:
    seen = server.created_at + later
    catalog["Tool"].create(
        server=server,
        name="use",
        qualified_name=f"mcp__{server.name}__use",
        digest="0",
        chars=1,
        first_seen_at=seen,
        changed_at=seen,
    )


def add_query(catalog: dict[str, Any], query: str, *, expected: list[str], actor: str = "toolsearch") -> None:
    policy = catalog["Policy"].get(slug="default")
    catalog["SavedQuery"].create(policy=policy, query=query, expected=expected)
    after = {"policy": "default", "query": query, "expected": ["a"]}
    catalog["Change"].create(actor=actor, subject="query", name=query, action="created", after=after)


@pytest.mark.django_db(transaction=True, serialized_rollback=True)
@pytest.mark.slow
def test_what_the_program_added_and_nobody_replaced_is_marked() -> None:
    try:
        catalog = managers(go_to(BEFORE), "catalog")
        add_tool(catalog, add_server(catalog, "github"), later=timedelta(seconds=2))
        add_server(catalog, "workshop", transport="stdio", command="python")
        catalog["Change"].create(
            actor="ada", subject="server", name="github", action="changed", after={"enabled": False}
        )
        # Of somebody's own, under names of the demo: made by others, replaced by tools or by an address.
        add_server(catalog, "slack", actor="ada")
        add_tool(catalog, add_server(catalog, "jira"), later=timedelta(days=1))
        add_server(catalog, "stripe", transport="http", url="https://mcp.example.com/")
        add_server(catalog, "mine", actor="ada")
        add_query(catalog, "as loaded", expected=["a"])
        add_query(catalog, "changed since", expected=["b"])
        add_query(catalog, "somebody's", expected=["a"], actor="ada")
        go_to_the_present()
        assert set(Server.objects.filter(demo=True).values_list("name", flat=True)) == {"github", "workshop"}
        assert list(SavedQuery.objects.filter(demo=True).values_list("query", flat=True)) == ["as loaded"]
    finally:
        go_to_the_present()


@pytest.mark.django_db(transaction=True, serialized_rollback=True)
@pytest.mark.slow
def test_workshop_with_another_address_is_ones_own() -> None:
    try:
        catalog = managers(go_to(BEFORE), "catalog")
        add_server(catalog, "workshop", transport="stdio", command="python")
        catalog["Change"].create(
            actor="ada",
            subject="server",
            name="workshop",
            action="changed",
            after={"command": "x"},
            at=timezone.now(),
        )
        go_to_the_present()
        assert not Server.objects.filter(demo=True).exists()
    finally:
        go_to_the_present()
