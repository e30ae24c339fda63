"""The demo catalog: full, valid, and loaded once."""

from decimal import Decimal

import pytest

from catalog.models import Change, ModelSupport, Server, Tool
from catalog.services import demo
from tests.harness.rows import make_server

pytestmark = pytest.mark.django_db


def test_fills_a_new_instance() -> None:
    assert demo.load_demo()
    assert Server.objects.count() >= 10
    assert Tool.objects.count() >= 150
    assert sum(Tool.objects.values_list("chars", flat=True)) / 4 > 40_000
    assert Server.objects.get(transport="stdio").name == "workshop"
    assert list(Tool.objects.filter(mark_count__gt=0).values_list("qualified_name", flat=True)) == []


def test_gives_models_prices_that_are_marked_as_examples() -> None:
    ModelSupport.objects.filter(name_pattern="claude-opus-4*").update(input_price=7)
    demo.load_demo()
    own = ModelSupport.objects.get(name_pattern="claude-opus-4*")
    assert (own.input_price, own.cached_input_price, own.prices_are_examples) == (Decimal(7), None, False)
    examples = ModelSupport.objects.filter(prices_are_examples=True)
    assert examples
    assert all(row.input_price and row.cached_input_price for row in examples)


def test_second_time_does_nothing() -> None:
    demo.load_demo()
    before = Change.objects.count()
    assert not demo.load_demo()
    assert Change.objects.count() == before


def test_catalog_that_was_emptied_stays_empty() -> None:
    demo.load_demo()
    Server.objects.all().delete()
    assert not demo.load_demo()
    assert not Server.objects.exists()


def test_instance_with_servers_is_left_alone() -> None:
    make_server()
    assert not demo.load_demo()
    assert Server.objects.count() == 1
