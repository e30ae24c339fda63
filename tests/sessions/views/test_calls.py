"""The pages of calls through the gateway."""

import csv
import io
import json
import uuid
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from catalog.access.roles import Role
from sessions.models import Call
from tests.harness.pages import HTMX, broken_rules, signed_in, text_of, visible_text
from tests.harness.rows import make_call, make_key, make_server, make_session, make_tool

pytestmark = pytest.mark.django_db


@pytest.fixture
def viewer() -> Client:
    return signed_in(Role.VIEWER)


class TestList:
    def test_shows_each_call(self, viewer: Client) -> None:
        make_call(key=make_key(name="coder"), outcome="tool_error", error="no such issue", is_cut=True)
        page = visible_text(viewer.get("/calls/"))
        for words in ("create_issue", "Tool error", "coder", "claude-code", "2026-07-28", "no such issue"):
            assert words in page
        for words in ("240 ms", "server 236 ms", "1.8 KB", "cut", "just now", "1 call"):
            assert words in page.replace("\xa0", " ")

    def test_links_what_is_still_there(self) -> None:
        tool, key, session = make_tool(), make_key(), make_session()
        call = make_call(key=key, tool=tool.qualified_name, server=tool.server.name, session_id=session.pk)
        links = (tool.get_absolute_url(), tool.server.get_absolute_url(), session.get_absolute_url())
        page = text_of(signed_in(Role.ADMIN).get("/calls/"))
        for link in (*links, f"/keys/#key-{key.pk}", f"/calls/{call.pk}/"):
            assert f'href="{link}"' in page
        assert f"#key-{key.pk}" not in text_of(signed_in(Role.VIEWER).get("/calls/"))
        session.delete()
        tool.server.delete()
        page = text_of(signed_in(Role.ADMIN).get("/calls/"))
        assert not any(f'href="{link}"' in page for link in links)

    def test_asks_again_and_gets_nothing_while_nothing_changes(self, viewer: Client) -> None:
        make_call()
        stamp = viewer.get("/calls/").context["stamp"]
        again = {**HTMX, "X-Seen": stamp}
        assert viewer.get("/calls/", headers=again).status_code == 204
        make_call()
        answer = viewer.get("/calls/", headers=again)
        assert answer.status_code == 200
        assert "<html" not in text_of(answer)

    def test_filters_stay_in_the_addresses_of_pages_and_files(self, viewer: Client) -> None:
        now = timezone.now()
        for number in range(120):
            make_call(server="time", at=now - timedelta(seconds=number))
        make_call(server="other")
        page = viewer.get("/calls/?server=time&outcome=ok")
        assert len(page.context["rows"]) == 50
        older = page.context["part"].older.cursor
        assert f"?server=time&amp;outcome=ok&amp;before={older}" in text_of(page)
        assert 'href="/calls.csv?server=time&amp;outcome=ok"' in text_of(page)
        second = viewer.get(f"/calls/?server=time&outcome=ok&before={older}")
        assert "every 4s" not in text_of(second)
        assert "Newest" in text_of(second)
        newer = second.context["part"].newer.cursor
        first = viewer.get(f"/calls/?server=time&outcome=ok&after={newer}")
        assert [row.call for row in first.context["rows"]] == [row.call for row in page.context["rows"]]

    @pytest.mark.parametrize(
        "query", ["before=x", "after=x", "outcome=x", "via=x", "session=x", "q=%00", "key=%00", "tool=a%00"]
    )
    def test_values_that_mean_nothing_are_left_out(self, viewer: Client, query: str) -> None:
        make_call()
        assert len(viewer.get(f"/calls/?{query}").context["rows"]) == 1

    def test_chosen_server_and_key_are_shown_though_they_are_gone(self, viewer: Client) -> None:
        make_call(server="gone-server", key_name="gone-key")
        page = text_of(viewer.get("/calls/?server=gone-server&key=gone-key"))
        assert '<option selected value="gone-key">' in page
        assert '<option selected value="gone-server">' in page

    def test_key_is_chosen_by_its_name(self, viewer: Client) -> None:
        key = make_key(name="coder")
        make_key(name="other")
        for given in ("coder", str(key.pk)):
            page = text_of(viewer.get(f"/calls/?key={given}"))
            assert f'<option selected value="{given}">coder</option>' in page
            assert page.count(">coder</option>") == 1

    def test_first_visit_says_what_a_call_is(self, viewer: Client) -> None:
        page = text_of(viewer.get("/calls/"))
        assert "No client has called a tool yet" in page
        assert 'href="/connect/"' in page
        assert "every 4s" in page
        assert "No call matches" in text_of(viewer.get("/calls/?q=x"))

    def test_names_from_clients_and_servers_are_escaped(self, viewer: Client) -> None:
        make_call(
            client="<b>c</b>", error="<b>e</b>", server="<b>s</b>", tool="<b>t</b>", key_name="<b>k</b>"
        )
        assert "<b>" not in text_of(viewer.get("/calls/"))
        assert "<b>" not in text_of(viewer.get(f"/calls/{Call.objects.get().pk}/"))

    def test_costs_the_same_however_many_there_are(
        self, viewer: Client, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        session = make_session()
        for _ in range(60):
            tool = make_tool(server=make_server())
            make_call(tool=tool.qualified_name, server=tool.server.name, session_id=session.pk)
        viewer.get("/calls/")
        with django_assert_num_queries(9):
            viewer.get("/calls/")


class TestDetail:
    def test_shows_what_was_recorded_to_admins_alone(self) -> None:
        call = make_call(arguments='{"title": "A"}', result='{"content": []}', error="no such issue")
        admin = signed_in(Role.ADMIN).get(f"/calls/{call.pk}/")
        assert broken_rules(admin) == []
        for words in ("{&quot;title&quot;: &quot;A&quot;}", "{&quot;content&quot;: []}", "no such issue"):
            assert words in text_of(admin)
        for role in (Role.VIEWER, Role.EDITOR):
            page = text_of(signed_in(role).get(f"/calls/{call.pk}/"))
            assert "no such issue" in page
            assert "only admins may see them" in page
            assert "title&quot;" not in page

    def test_says_where_nothing_was_recorded(self, viewer: Client) -> None:
        call = make_call(upstream_ms=None, session_id=uuid.uuid4())
        page = visible_text(viewer.get(f"/calls/{call.pk}/"))
        assert "Not recorded" in page
        assert "without asking the server" in page

    def test_one_that_is_gone_is_not_found(self, viewer: Client) -> None:
        for call_id in (1, 2**63, 10**30):
            assert viewer.get(f"/calls/{call_id}/").status_code == 404


class TestFiles:
    def test_csv_obeys_the_filter_and_runs_no_formula(self, viewer: Client) -> None:
        call = make_call(client="=HYPERLINK(1)", error='+a "b",\nc', upstream_ms=None, arguments="secret")
        make_call(outcome="timeout")
        answer = viewer.get("/calls.csv?outcome=ok")
        text = b"".join(answer).decode()
        (row,) = csv.DictReader(io.StringIO(text))
        assert (row["client"], row["error"], row["upstream_ms"]) == ("'=HYPERLINK(1)", '\'+a "b",\nc', "")
        assert (row["id"], row["at"], row["key"]) == (str(call.pk), call.at.isoformat(), call.key_name)
        assert "secret" not in text
        assert 'filename="calls.csv"' in answer["Content-Disposition"]

    def test_json_has_what_rest_answers(self, viewer: Client) -> None:
        make_call(key=make_key(name="coder"))
        make_call(key_name="away")
        text = b"".join(viewer.get("/calls.json?key=coder")).decode()
        (item,) = json.loads(text)
        assert (item["key"], item["duration_ms"], item["is_cut"]) == ("coder", 240, False)
        assert json.loads(b"".join(viewer.get("/calls.json?key=x"))) == []


def test_other_pages_link_their_calls(viewer: Client) -> None:
    tool, session = make_tool(), make_session()
    for page, query in (
        (tool.get_absolute_url(), f"tool={tool.qualified_name}"),
        (tool.server.get_absolute_url(), f"server={tool.server.name}"),
        (session.get_absolute_url(), f"session={session.pk}"),
    ):
        assert f'href="/calls/?{query}"' in text_of(viewer.get(page))
