"""`manage.py create_key` prints one key alone on stdout."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from catalog.domain.keys import read_prefix
from catalog.models import ApiKey

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("create_key", *arguments, stdout=out)
    return out.getvalue()


def test_prints_the_key_alone() -> None:
    printed = run("my agent")
    assert read_prefix(printed.removesuffix("\n")) == ApiKey.objects.get().prefix


def test_admin_scope_is_asked_for() -> None:
    run("agent")
    run("admin", "--admin")
    assert list(ApiKey.objects.order_by("pk").values_list("scope", flat=True)) == ["agent", "admin"]


def test_unknown_policy_makes_no_key() -> None:
    with pytest.raises(CommandError, match="no policy nowhere"):
        run("agent", "--policy", "nowhere")
    assert not ApiKey.objects.exists()
