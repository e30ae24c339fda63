"""The card of a server's page that tells how calls go through the gateway."""

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from catalog.access.roles import Role
from catalog.domain.choices import Transport
from catalog.models import Server
from sessions.models import BreakerState, UpstreamState
from tests.harness.pages import HTMX, signed_in, text_of, visible_text
from tests.harness.rows import make_gateway_process, make_lease, make_server, make_upstream_state

pytestmark = pytest.mark.django_db


@pytest.fixture
def server() -> Server:
    return make_server(
        name="org.example/weather", transport=Transport.HTTP, url="https://weather.example.com/"
    )


def address_of(server: Server) -> str:
    return f"/gateway/servers/{server.address}/"


def card(server: Server) -> str:
    return visible_text(signed_in(Role.VIEWER).get(address_of(server), headers=HTMX))


class TestBreaker:
    def test_server_that_nobody_called_lets_calls_through(self, server: Server) -> None:
        assert "Calls go through No open connection" in card(server)

    def test_refusal_is_told_with_its_end_and_its_reason(self, server: Server) -> None:
        until = datetime(2100, 1, 2, 12, 3, 10, tzinfo=UTC)
        make_upstream_state(
            server=server, breaker=BreakerState.OPEN, failures=5, open_until=until, error="<b>refused</b>"
        )
        told = card(server)
        assert "Calls are refused until 12:03:10 UTC, after 5 failures in a row: " in told
        assert "&lt;b&gt;refused&lt;/b&gt;" in told

    def test_longest_refusal_of_all_processes_counts(self, server: Server) -> None:
        soon, later = timezone.now() + timedelta(minutes=1), timezone.now() + timedelta(minutes=2)
        make_upstream_state(server=server)
        make_upstream_state(server=server, breaker=BreakerState.OPEN, open_until=later, failures=6)
        make_upstream_state(server=server, breaker=BreakerState.OPEN, open_until=soon, failures=5)
        assert f"{later:%H:%M:%S} UTC, after 6 failures" in card(server)

    @pytest.mark.parametrize(
        ("breaker", "ends"), [(BreakerState.HALF_OPEN, None), (BreakerState.OPEN, timedelta(seconds=-1))]
    )
    def test_next_call_tries_again_once_the_time_is_up(
        self, server: Server, breaker: BreakerState, ends: timedelta | None
    ) -> None:
        until = timezone.now() + ends if ends else None
        make_upstream_state(server=server, breaker=breaker, failures=1, open_until=until)
        assert "Trying again The next call tries it again, after 1 failure in a row." in card(server)

    def test_process_that_is_gone_tells_nothing(self, server: Server) -> None:
        lost = make_gateway_process(seen_at=timezone.now() - timedelta(seconds=11))
        make_upstream_state(server=server, process=lost, breaker=BreakerState.OPEN, refused={"sampling": 1})
        make_lease(process=lost, server=server)
        told = card(server)
        assert "Calls go through No open connection" in told
        assert "sampling" not in told


def test_what_could_not_pass_is_counted_over_processes_the_most_often_first(server: Server) -> None:
    make_upstream_state(server=server, refused={"elicitation": 1, "sampling": 1})
    make_upstream_state(server=server, refused={"sampling": 2, "<i>": 1})
    told = card(server)
    assert "Refused: sampling (3), elicitation (1), &lt;i&gt; (1)." in told


def test_open_connections_are_counted(server: Server) -> None:
    process = make_gateway_process()
    make_lease(process=process, server=server, open_calls=2)
    make_lease(process=process, server=server, open_calls=1)
    make_lease(process=process, open_calls=9)
    assert "2 open connections , 3 open calls" in card(server)


class TestCard:
    def test_server_s_page_asks_for_it(self, server: Server) -> None:
        page = text_of(signed_in(Role.VIEWER).get(server.get_absolute_url()))
        assert f'hx-get="{address_of(server)}"' in page

    def test_snapshot_has_none(self) -> None:
        assert "/gateway/servers/" not in text_of(
            signed_in(Role.VIEWER).get(make_server().get_absolute_url())
        )

    def test_is_a_page_without_javascript(self, server: Server) -> None:
        whole = text_of(signed_in(Role.VIEWER).get(address_of(server)))
        assert "<h1>Through the gateway</h1>" in whole
        assert "<html" not in text_of(signed_in(Role.VIEWER).get(address_of(server), headers=HTMX))

    def test_is_empty_while_nothing_changes(self, server: Server) -> None:
        state, client = make_upstream_state(server=server, refused={"roots": 1}), signed_in(Role.VIEWER)
        seen = {**HTMX, "X-Seen": client.get(address_of(server), headers=HTMX).context["upstream"].stamp}
        assert client.get(address_of(server), headers=seen).status_code == 204
        UpstreamState.objects.filter(pk=state.pk).update(refused={"roots": 2})
        assert client.get(address_of(server), headers=seen).status_code == 200

    def test_needs_sign_in_and_a_role_and_only_reads(self, server: Server, client: Client) -> None:
        assert client.get(address_of(server)).headers["Location"].startswith("/sign-in/")
        assert signed_in(Role.NONE).get(address_of(server)).status_code == 403
        assert signed_in(Role.ADMIN).post(address_of(server)).status_code == 405

    def test_missing_server_is_not_found(self) -> None:
        assert signed_in(Role.VIEWER).get("/gateway/servers/nothing/").status_code == 404

    def test_costs_the_same_queries_for_many(
        self, server: Server, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        for _ in range(5):
            make_upstream_state(server=server)
            make_lease(server=server)
        client = signed_in(Role.VIEWER)
        with django_assert_num_queries(6):
            client.get(address_of(server), headers=HTMX)
