"""The overview: what the catalog costs, and where the tokens go."""

import json
import re
from datetime import timedelta
from html import unescape

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from catalog.access.roles import Role
from catalog.domain.choices import AuthState, Transport
from catalog.models import ModelSupport, OAuthGrant, Policy, Server
from catalog.selectors import servers, token_map, totals
from catalog.services import decisions
from catalog.services.demo import load_demo
from sessions.models import ActivityHour, SearchEventOutcome
from sessions.offers import costs
from tests.harness.pages import HTMX, signed_in, text_of, visible_text
from tests.harness.rows import make_change, make_policy, make_search, make_server, make_session, make_tool
from tests.sessions.api.calling import make_agent

pytestmark = pytest.mark.django_db


def test_sums_what_an_agent_would_pay() -> None:
    server = make_server()
    make_tool(server=server, name="aa", description="x" * 79_996)  # 80,000 characters with the empty schema
    make_tool(server=make_server(enabled=False), name="off", description="x" * 1000)
    make_tool(server=server, name="hidden", description="x" * 1000, hidden=True)
    page = visible_text(signed_in(Role.VIEWER).get("/"))
    assert "20,000 tokens" in page
    assert "10% of a 200,000-token context window" in page
    assert "1 tool of 20,000 tokens on average, on 1 server and 1 disabled" in page


def test_says_what_is_paid_now_and_what_is_saved() -> None:
    make_tool(server=make_server(defer_loading=False), name="aa", description="x" * 3996)
    make_tool(server=make_server(), name="bb", description="x" * 35_996)
    decisions.bring_up_to_date()
    page = visible_text(signed_in(Role.VIEWER).get("/"))
    tokens = make_agent().begin().state()["tokens"]
    assert tokens["full"] == 10_000
    assert "an agent pays 10,000 tokens" in page
    assert f"Now it pays {tokens['sent']:,} tokens 1 tool loads, 1 waits for a search" in page
    assert "the search tool and its prompt are counted" in page
    assert f"Saved {tokens['saved'] / 100:.0f}% {tokens['saved']:,} tokens less" in page


def test_says_plainly_where_deferring_costs_more_than_it_saves() -> None:
    make_tool(server=make_server(), name="aa", description="x" * 300)
    decisions.bring_up_to_date()
    response = signed_in(Role.VIEWER).get("/")
    more = -make_agent().begin().state()["tokens"]["saved"]
    assert more > 0
    assert f"Deferring costs {more} tokens more" in visible_text(response)
    assert '<a href="/policies/default/">Load all tools</a>' in text_of(response)
    assert '<a href="/policies/default/edit/">Load all tools</a>' in text_of(signed_in(Role.EDITOR).get("/"))


def test_servers_add_up_to_what_everything_costs() -> None:
    for number in range(7):
        make_tool(server=make_server(), name=f"tool_{number}", description="x" * 399)
    page = signed_in(Role.VIEWER).get("/")
    rows = page.context["token_map"].rows
    assert sum(row.tokens for row in rows) == page.context["cost"].full_tokens


class TestMoney:
    def test_is_shown_for_the_chosen_model(self) -> None:
        ModelSupport.objects.filter(name_pattern="claude-opus-4*").update(
            input_price=5, cached_input_price="0.5"
        )
        cheap = ModelSupport.objects.get(name_pattern="gpt-*")
        ModelSupport.objects.filter(pk=cheap.pk).update(input_price=1)
        make_tool(server=make_server(), name="aa", description="x" * 39_996)
        Policy.objects.update(mode="off")
        client = signed_in(Role.VIEWER)
        for path in ("/", "/policies/default/", "/policies/default/agent/"):
            assert "$50.00 per 1,000 requests, $5.00 cached" in visible_text(client.get(path))
        response = client.post("/models/choose/", {"model": cheap.pk, "next": "/policies/default/"})
        assert response.headers["Location"] == "/policies/default/"
        for path in ("/", "/policies/default/", "/policies/default/agent/"):
            page = visible_text(client.get(path))
            assert "$10.00 per 1,000 requests" in page
            assert "cached" not in page

    def test_is_not_shown_where_no_price_is_known(self) -> None:
        make_tool(server=make_server(), name="aa", description="x" * 39_996)
        client = signed_in(Role.VIEWER)
        for path in ("/", "/policies/default/", "/policies/default/agent/"):
            page = client.get(path)
            assert "$" not in visible_text(page).replace("$TOOLSEARCH_KEY", "")
            assert '<a href="/models/">Give a model its price</a>' in text_of(page)

    def test_examples_are_called_examples_and_own_prices_come_first(self) -> None:
        assert load_demo()
        client = signed_in(Role.VIEWER)
        assert "Example prices" in visible_text(client.get("/"))
        ModelSupport.objects.filter(name_pattern="gpt-*").update(input_price=1)
        page = client.get("/")
        assert page.context["priced"].chosen.name_pattern == "gpt-*"
        assert "Example prices" not in visible_text(page)

    @pytest.mark.parametrize("model", ["", "x", "999999"])
    def test_unknown_model_is_not_chosen(self, model: str) -> None:
        response = signed_in(Role.VIEWER).post("/models/choose/", {"model": model})
        assert response.status_code == 302
        assert not response.cookies


def test_looks_through_the_policy_asked_for() -> None:
    make_tool(server=make_server(), name="aa", description="x" * 3996)
    make_policy(slug="eager", mode="off", context_window=2000)
    decisions.bring_up_to_date()
    client = signed_in(Role.VIEWER)
    sent = costs.cost_of_policy(Policy.objects.get(slug="default")).sent_tokens
    assert f"Now it pays {sent} tokens" in visible_text(client.get("/"))
    eager = client.get("/?policy=eager")
    assert "Now it pays 1,000 tokens" in visible_text(eager)
    assert "50% of a 2,000-token context window" in visible_text(eager)
    assert 'hx-get="/?policy=eager"' in text_of(eager)
    assert f"Now it pays {sent} tokens" in visible_text(client.get("/?policy=nothing"))


def test_map_tells_what_loads_from_what_waits() -> None:
    make_tool(server=make_server(defer_loading=False), name="loads")
    make_tool(server=make_server(), name="waits")
    legend = "Deferred until a search finds it"
    assert legend not in visible_text(signed_in(Role.VIEWER).get("/"))
    decisions.bring_up_to_date()
    page = signed_in(Role.VIEWER).get("/")
    assert legend in visible_text(page)
    areas = page.context["areas"]
    told = {child["name"]: child["is_deferred"] for area in areas for child in area["children"]}
    assert told == {"loads": False, "waits": True}


@pytest.mark.parametrize(("chars", "is_over"), [(80_000, False), (80_004, True)])
def test_bar_changes_colour_past_a_tenth_of_the_window(chars: int, is_over: bool) -> None:
    Policy.objects.update(mode="off")
    make_tool(name="aa", description="x" * (chars - 4))
    assert ('class="used over"' in text_of(signed_in(Role.VIEWER).get("/"))) is is_over


def test_bar_stays_in_its_track_when_the_window_is_overfull() -> None:
    Policy.objects.update(mode="off")
    make_tool(name="aa", description="x" * 2_000_000)
    page = text_of(signed_in(Role.VIEWER).get("/"))
    assert 'class="used over" width="100.0%"' in page
    assert "250% of a" in page


def test_map_holds_servers_and_their_tools_with_where_they_lead() -> None:
    server = make_server(name="</script>")
    tool = make_tool(server=server, name="read")
    page = text_of(signed_in(Role.VIEWER).get("/"))
    data = re.search(r'<div id="token-map-areas" hidden>(.*?)</div>', page)
    assert data is not None
    assert json.loads(unescape(data[1])) == [
        {
            "name": "</script>",
            "value": tool.tokens,
            "url": server.get_absolute_url(),
            "opens": "",
            "is_deferred": None,
            "children": [
                {
                    "name": "read",
                    "value": tool.tokens,
                    "url": tool.get_absolute_url(),
                    "opens": "",
                    "is_deferred": None,
                    "children": [],
                }
            ],
        }
    ]


def test_troubled_servers_and_changes_are_named() -> None:
    make_server(
        name="broken", transport=Transport.STDIO, command="x", failures=2, last_error="It is not there."
    )
    make_change(name="github")
    page = visible_text(signed_in(Role.VIEWER).get("/"))
    assert "broken It is not there. Failing" in page
    assert "Server github changed" in page


@pytest.mark.parametrize(("role", "words"), [(Role.VIEWER, "an admin has to"), (Role.ADMIN, "")])
def test_server_that_asks_for_more_rights_is_named_though_it_lists_its_tools(role: Role, words: str) -> None:
    for name, state in (("tracker", AuthState.SCOPE_NEEDED), ("fine", AuthState.CONNECTED)):
        server = make_server(
            name=name, transport=Transport.HTTP, url="https://x.test/mcp", last_refreshed_at=timezone.now()
        )
        OAuthGrant.objects.create(server=server, state=state, sealed="x")
    page = signed_in(role).get("/")
    assert [one.name for one in page.context["troubled"].servers] == ["tracker"]
    assert f"tracker It asks for more rights: {words} grant them".replace("  ", " ") in visible_text(page)
    Server.objects.update(enabled=False)
    assert not signed_in(role).get("/").context["troubled"].servers


def test_asking_which_servers_need_attention_is_one_query(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    for number in range(3):
        server = make_server(
            name=f"s{number}", transport=Transport.HTTP, url="https://x.test/mcp", failures=number
        )
        OAuthGrant.objects.create(server=server, state=AuthState.SCOPE_NEEDED, sealed="x")
    with django_assert_num_queries(1):
        found = servers.servers_needing_attention(now=timezone.now()).servers
        assert [one.oauth_grant.state for one in found] == [AuthState.SCOPE_NEEDED] * 3


def test_new_server_needs_attention_only_when_its_first_refresh_is_long_due() -> None:
    server = make_server(name="newcomer", transport=Transport.STDIO, command="x")
    client = signed_in(Role.VIEWER)
    page = client.get("/")
    assert not page.context["troubled"].servers
    assert "1 server has not been asked yet" in visible_text(page)
    Server.objects.update(created_at=timezone.now() - timedelta(minutes=5))
    assert client.get("/").context["troubled"].servers == [server]


def test_servers_are_said_to_have_answered_only_if_they_were_asked() -> None:
    client = signed_in(Role.VIEWER)
    make_server(name="snapshot", last_refreshed_at=timezone.now())
    assert "answered" not in visible_text(client.get("/"))
    make_server(transport=Transport.STDIO, command="x", last_refreshed_at=timezone.now())
    assert "1 server answered when last asked" in visible_text(client.get("/"))


def test_how_many_more_servers_need_attention_is_told() -> None:
    for number in range(10):
        make_server(name=f"bad-{number}", transport=Transport.STDIO, command="x", failures=1)
    page = visible_text(signed_in(Role.VIEWER).get("/"))
    assert "bad-7" in page
    assert "bad-8" not in page
    assert "2 more" in page


def test_part_is_what_changes_and_asks_for_less() -> None:
    make_tool(server=make_server(name="github"))
    client = signed_in(Role.VIEWER)
    seen = client.get("/").context["stamp"]
    page = text_of(client.get("/", {"seen": seen}, headers=HTMX))
    assert "<html" not in page
    assert 'id="overview-side" hx-swap-oob="true"' in page
    assert "token-map" not in page
    assert "overview-steps" not in page


def test_map_tables_and_steps_follow_together() -> None:
    client = signed_in(Role.VIEWER)
    empty = client.get("/")
    assert "No tools yet" in visible_text(empty)
    tool = make_tool(server=make_server(name="github"))
    part = client.get("/", {"seen": empty.context["stamp"]}, headers=HTMX)
    page = visible_text(part)
    assert "No tools yet" not in page
    assert "Tokens by server" in page
    assert "Largest tools" in page
    for place in ("overview-steps", "overview-map", "overview-tables"):
        assert f'id="{place}" hx-swap-oob="true"' in text_of(part)
    assert f'value="{part.context["stamp"]}"' in text_of(part), "the next question names what is shown now"
    assert "1 tool of" in page
    decisions.bring_up_to_date()
    decided = client.get("/", {"seen": part.context["stamp"]}, headers=HTMX)
    assert tool.name in text_of(decided)


def test_costs_the_same_queries_whatever_the_size(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    assert load_demo()
    client = signed_in(Role.VIEWER)
    client.get("/")
    with django_assert_num_queries(27):
        client.get("/")
    Server.objects.filter(name="github").delete()
    seen = client.get("/").context["stamp"]
    with django_assert_num_queries(20):
        client.get("/", {"seen": seen}, headers=HTMX)


def test_needs_sign_in_and_a_role_and_only_reads(client: Client) -> None:
    assert client.get("/").headers["Location"] == "/sign-in/?next=/"
    assert signed_in(Role.NONE).get("/").status_code == 403
    assert signed_in(Role.ADMIN).post("/").status_code == 405


class TestLargeCatalog:
    """Where there are very many tools, the map is of servers, and one opens at a click."""

    @pytest.fixture(autouse=True)
    def few_are_many(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(token_map, "MAP_TOOLS", 2)

    def test_map_is_of_servers_and_nothing_is_summed_up(self) -> None:
        loads, waits = make_server(name="loads", defer_loading=False), make_server(name="waits")
        for name in ("large", "small"):
            make_tool(server=loads, name=name)
            make_tool(server=waits, name=name, description="x" * 400)
        decisions.bring_up_to_date()
        response = signed_in(Role.VIEWER).get("/")
        areas = response.context["areas"]
        assert [(area["name"], area["is_deferred"]) for area in areas] == [("waits", True), ("loads", False)]
        assert all(area["opens"] and not area["children"] for area in areas)
        assert "rectangle is a server: click one to see its tools" in visible_text(response)

    def test_server_opens_with_its_own_largest_tools(self) -> None:
        server = make_server(name="org/many")
        for name, chars in (("large", 400), ("small", 40), ("tiny", 4)):
            make_tool(server=server, name=name, description="x" * chars)
        make_tool(name="other")
        decisions.bring_up_to_date()
        client = signed_in(Role.VIEWER)
        (area,) = (area for area in client.get("/").context["areas"] if area["name"] == "org/many")
        tools = client.get(area["opens"]).json()
        assert [(tool["name"], tool["is_deferred"]) for tool in tools] == [("large", True), ("small", True)]
        assert client.get(tools[0]["url"]).status_code == 200

    def test_unknown_server_is_not_found(self) -> None:
        assert signed_in(Role.VIEWER).get("/server-map/nobody/").status_code == 404

    def test_says_how_much_the_drawn_servers_are_of_all(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(token_map, "MAP_SERVERS", 1)
        for number in range(4):
            make_tool(name=f"tool_{number}")
        found = token_map.read_token_map(totals.read_totals(), None)
        assert found.is_cut
        assert 0 < found.share < 1


class TestActivity:
    def test_sessions_and_searches_are_counted_over_the_period_asked_for(self) -> None:
        hour = timezone.now().replace(minute=0, second=0, microsecond=0)
        ActivityHour.objects.create(hour=hour, sessions=2, searches=30, misses=3)
        ActivityHour.objects.create(hour=hour - timedelta(days=2), searches=1000)
        make_session()
        client = signed_in(Role.VIEWER)
        day = visible_text(client.get("/"))
        assert "Searches 30 Found nothing 3 10% Sessions started 2 Active in the last hour 1" in day
        assert "Searches 1,030 Found nothing 3" in visible_text(client.get("/?period=7d"))
        assert client.get("/?period=nonsense").context["activity"].period == "24h"

    def test_searches_that_found_nothing_open_in_the_test_console(self) -> None:
        hour = timezone.now().replace(minute=0, second=0, microsecond=0)
        ActivityHour.objects.create(hour=hour, searches=3, misses=3)
        session = make_session()
        for query in ("play jazz & blues", "play jazz & blues", "book a flight"):
            make_search(session, outcome=SearchEventOutcome.NO_MATCH, query=query)
        page = signed_in(Role.VIEWER).get("/")
        link = f'href="/console/?q=play%20jazz%20%26%20blues&amp;as=session:{session.pk}"'
        assert link in text_of(page)
        assert "play jazz &amp; blues just now 2×" in visible_text(page)

    def test_nothing_yet_says_what_will_be_here(self) -> None:
        page = visible_text(signed_in(Role.VIEWER).get("/"))
        assert "No agent has started a session or searched in the last 24 hours" in page

    def test_queries_that_went_with_their_sessions_are_not_called_answered(self) -> None:
        hour = timezone.now().replace(minute=0, second=0, microsecond=0)
        ActivityHour.objects.create(hour=hour, searches=3, misses=3)
        page = visible_text(signed_in(Role.VIEWER).get("/"))
        assert "have been deleted" in page
        assert "every search had an answer" not in page

    def test_asking_again_is_answered_when_something_has_happened(
        self, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        session, client = make_session(), signed_in(Role.VIEWER)
        hour = timezone.now().replace(minute=0, second=0, microsecond=0)
        ActivityHour.objects.create(hour=hour, searches=1, misses=1)
        make_search(session, outcome=SearchEventOutcome.NO_MATCH)
        part = client.get("/activity/?period=7d", headers=HTMX)
        assert "<html" not in text_of(part)
        again = {**HTMX, "X-Seen": part.context["activity"].stamp}
        with django_assert_num_queries(5):
            assert client.get("/activity/?period=7d", headers=again).status_code == 204
        ActivityHour.objects.update(searches=2)
        assert client.get("/activity/?period=7d", headers=again).status_code == 200

    def test_opened_by_itself_it_leads_to_the_overview(self) -> None:
        response = signed_in(Role.VIEWER).get("/activity/?period=7d")
        assert response.headers["Location"] == "/?period=7d"
        assert signed_in(Role.NONE).get("/activity/", headers=HTMX).status_code == 403
