"""Examples of queries are made of one's own tools, and each finds something."""

import re

import pytest

from catalog.models import Policy, Tool
from catalog.selectors import search
from catalog.selectors.query_examples import QueryExamples, read_examples
from catalog.services import derived_state
from catalog.services.demo import load_demo
from tests.harness.rows import make_server, make_tool

pytestmark = pytest.mark.django_db


def read_default() -> QueryExamples | None:
    derived_state.bring_up_to_date()
    return read_examples(Policy.objects.get(slug="default"))


def test_are_of_the_tools_that_are_there() -> None:
    server = make_server(name="harbour-master")
    for name in ("berth", "getTide", "list_ships"):
        make_tool(server=server, name=name)
    assert read_default() == QueryExamples(
        keywords="get tide", required="+harbour get tide", select="select:getTide,berth", pattern="^getTide"
    )


def test_each_finds_something() -> None:
    load_demo()
    examples = read_default()
    assert examples is not None
    policy = Policy.objects.get(slug="default")
    for query in (examples.keywords, examples.required, examples.select):
        assert search.search_policy(policy=policy, query=query).hits, query
    assert any(re.match(examples.pattern, name) for name in Tool.objects.values_list("name", flat=True))


def test_none_without_tools_or_with_names_that_are_no_words() -> None:
    assert read_default() is None
    make_tool(server=make_server(), name="<script>")
    assert read_default() is None


def test_tools_that_the_policy_does_not_show_are_no_examples() -> None:
    make_tool(server=make_server(name="a"), name="hidden_one", hidden=True)
    make_tool(server=make_server(name="b", enabled=False), name="disabled_one")
    make_tool(server=make_server(name="c"), name="shown_one")
    examples = read_default()
    assert examples is not None
    assert examples.keywords == "shown one"
