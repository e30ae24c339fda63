"""`manage.py remove_demo`: what went is said, and it is in force when the command returns."""

from io import StringIO

import pytest
from django.core.management import call_command

from catalog.models import DecidedList, Server
from catalog.selectors.decisions import count_behind
from catalog.services import demo

pytestmark = pytest.mark.django_db


def run_command() -> str:
    out = StringIO()
    call_command("remove_demo", stdout=out)
    return out.getvalue().strip()


def test_removes_the_demo_and_says_how_much() -> None:
    demo.load_demo()
    assert run_command().startswith("removed 12 servers, ")
    assert not Server.objects.exists()
    assert not count_behind()
    assert DecidedList.objects.get(policy__slug="default").tools == 0


def test_without_a_demo_says_so() -> None:
    assert run_command() == "there is no demo here"
