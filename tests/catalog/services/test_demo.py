"""The demo catalog: full, valid, and loaded once."""

import pytest

from catalog.models import Change, Server, Tool
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
