"""Changing a server: its refresh interval and its address."""

from typing import Any

import pytest
from django.utils import timezone

from catalog.access.actors import COMMAND_LINE, Actor
from catalog.access.roles import Role
from catalog.domain.choices import Transport
from catalog.domain.connection import FailureCode
from catalog.domain.dialects import ServerEntry
from catalog.domain.errors import InvalidInput, NotAllowed
from catalog.models import Change, Server
from catalog.services import servers
from tests.harness.rows import make_server

pytestmark = pytest.mark.django_db


def test_next_refresh_counts_from_the_last() -> None:
    now = timezone.now()
    server = make_server(last_refreshed_at=now)
    servers.set_refresh_interval(server=server, seconds=60, actor=COMMAND_LINE)
    row = Server.objects.get()
    assert row.next_refresh_at is not None
    assert (row.next_refresh_at - now).total_seconds() == 60
    assert Change.objects.get().after == {"refreshIntervalSeconds": 60}


def test_same_interval_is_no_change() -> None:
    servers.set_refresh_interval(server=make_server(), seconds=3600, actor=COMMAND_LINE)
    assert not Change.objects.exists()


@pytest.mark.parametrize("seconds", [9, 365 * 86_400 + 1])
def test_out_of_bounds_is_refused(seconds: int) -> None:
    with pytest.raises(InvalidInput, match="from 10 seconds to 365 days"):
        servers.set_refresh_interval(server=make_server(), seconds=seconds, actor=COMMAND_LINE)


def test_viewer_may_not() -> None:
    with pytest.raises(NotAllowed):
        servers.set_refresh_interval(
            server=make_server(), seconds=60, actor=Actor(label="v", role=Role.VIEWER)
        )


@pytest.mark.parametrize(("url", "is_reset"), [("https://new.test/", True), ("https://old.test/", False)])
def test_server_at_another_address_has_not_failed_yet(url: str, is_reset: bool) -> None:
    failed: dict[str, Any] = {
        "failures": 3,
        "last_error_code": FailureCode.CONNECT_TIMEOUT,
        "last_error": "It does not answer",
        "stale_since": timezone.now(),
    }
    make_server(name="a", transport=Transport.HTTP, url="https://old.test/", **failed)
    entry = ServerEntry(name="a", transport=Transport.HTTP, url=url)
    servers.store_entry(entry=entry, actor=COMMAND_LINE)
    row = Server.objects.values(*failed).get()
    reset = {"failures": 0, "last_error_code": "", "last_error": "", "stale_since": None}
    assert row == (reset if is_reset else failed)


@pytest.mark.parametrize("name", ["..", "x/refresh", "~12"])
def test_new_server_gets_no_name_that_cannot_be_addressed(name: str) -> None:
    entry = ServerEntry(name=name, transport=Transport.HTTP, url="https://a.test/")
    with pytest.raises(InvalidInput, match="named"):
        servers.store_entry(entry=entry, actor=COMMAND_LINE)
