"""The page of saved queries: a headline, what moved, and what an editor does there."""

from typing import Any

import pytest
from django.test import Client

from catalog.access.actors import COMMAND_LINE
from catalog.access.roles import Role
from catalog.models import Policy, SavedQuery, SavedRun
from catalog.services import decisions, derived_state, policies, saved_queries, saved_runs
from tests.harness.pages import HTMX, signed_in, text_of, visible_text
from tests.harness.rows import make_policy, make_server, make_tool

pytestmark = pytest.mark.django_db

PAGE = "/console/saved/"


@pytest.fixture
def policy() -> Policy:
    slack = make_server(name="slack")
    make_tool(server=slack, name="send_message", description="Write to a channel.")
    make_tool(server=slack, name="list_channels", description="Every channel.")
    derived_state.bring_up_to_date()
    return Policy.objects.get(slug="default")


def save(policy: Policy, query: str = "send message", expected: str = "send_message") -> SavedQuery:
    saved = saved_queries.save_query(policy=policy, query=query, expected=[expected], actor=COMMAND_LINE)
    saved_runs.run_policy(policy)
    return saved


def break_by_a_setting(policy: Policy) -> None:
    policies.change_policy(policy=policy, changed={"visible": ["slack/list_channels"]}, actor=COMMAND_LINE)


class TestPage:
    def test_empty_says_what_to_do(self) -> None:
        page = visible_text(signed_in(Role.VIEWER).get(PAGE))
        assert "Nothing is saved for default yet" in page

    def test_headline_and_places(self, policy: Policy) -> None:
        save(policy)
        response = signed_in(Role.VIEWER).get(PAGE)
        page = visible_text(response)
        assert "1 of 1" in page
        assert "100%" in page
        assert "mcp__slack__send_message place 1" in page
        assert 'href="/console/?q=send+message&amp;as=default"' in text_of(response)

    def test_regression_is_seen_with_its_cause(self, policy: Policy) -> None:
        save(policy)
        break_by_a_setting(policy)
        decisions.bring_up_to_date()
        saved_runs.run_policy(policy)
        page = visible_text(signed_in(Role.VIEWER).get(PAGE))
        assert "0 of 1" in page
        assert "−100.0 points since the run before" in page
        assert "1 query passed before and fails now" in page
        assert "command line changed policy default visible unset → slack/list_channels" in page
        assert "not found , before 1" in page

    def test_stale_part_asks_for_itself_again_until_the_worker_ran(self, policy: Policy) -> None:
        save(policy)
        break_by_a_setting(policy)
        client = signed_in(Role.VIEWER)
        stale = client.get(PAGE, headers=HTMX)
        assert "<html" not in text_of(stale)
        assert "has changed since these were run" in visible_text(stale)
        assert f'hx-get="{PAGE}" hx-trigger="every 2s"' in text_of(stale)
        decisions.bring_up_to_date()
        saved_runs.run_policy(policy)
        assert "hx-trigger" not in text_of(client.get(PAGE, headers=HTMX))

    def test_other_policies_sets_are_one_click_away(self, policy: Policy) -> None:
        other = make_policy(slug="other", visible=[])
        derived_state.bring_up_to_date()
        save(policy)
        save(other)
        response = signed_in(Role.VIEWER).get(PAGE, {"policy": "other"})
        assert "other 1 fails" in visible_text(response)
        assert response.context["set"].policy == other
        assert signed_in(Role.VIEWER).get(PAGE, {"policy": "gone"}).context["set"].policy == policy

    def test_opens_with_the_set_that_fails(self, policy: Policy) -> None:
        other = make_policy(slug="other", visible=[])
        derived_state.bring_up_to_date()
        save(policy)
        assert signed_in(Role.VIEWER).get(PAGE).context["set"].policy == policy
        save(other)
        assert signed_in(Role.VIEWER).get(PAGE).context["set"].policy == other

    def test_number_of_queries_does_not_grow_with_the_set(
        self, policy: Policy, django_assert_num_queries: Any
    ) -> None:
        client = signed_in(Role.VIEWER)
        save(policy)
        for number in range(20):
            save(policy, f"send message {number}", "list_channels")
        with django_assert_num_queries(11):
            client.get(PAGE)


class TestSaving:
    def test_keeps_runs_and_leads_back(self, policy: Policy) -> None:
        sent = {
            "policy": "default",
            "query": "send to a channel",
            "expected": ["mcp__slack__send_message"],
            "others": "list_channels,",
            "next": "/console/?q=send",
        }
        client = signed_in(Role.EDITOR)
        response = client.post(f"{PAGE}save/", sent)
        assert response.headers["Location"] == "/console/?q=send"
        saved = SavedQuery.objects.get()
        assert saved.expected == ["mcp__slack__send_message", "mcp__slack__list_channels"]
        assert "Saved “send to a channel”. It passes." in visible_text(client.get(PAGE))
        assert SavedRun.objects.get().queries == 1

    @pytest.mark.parametrize("target", ["https://elsewhere.example/", "//elsewhere.example", ""])
    def test_leads_nowhere_else(self, policy: Policy, target: str) -> None:
        sent = {"policy": "default", "query": "send", "others": "send_message", "next": target}
        response = signed_in(Role.EDITOR).post(f"{PAGE}save/", sent)
        assert response.headers["Location"] == f"{PAGE}?policy=default"

    def test_query_that_fails_from_the_start_is_told(self, policy: Policy) -> None:
        client = signed_in(Role.EDITOR)
        client.post(f"{PAGE}save/", {"policy": "default", "query": "+slack send", "others": "send_message"})
        break_by_a_setting(policy)
        decisions.bring_up_to_date()
        client.post(f"{PAGE}save/", {"policy": "default", "query": "send", "others": "send_message"})
        assert "Saved “send”. It fails: not every tool" in visible_text(client.get(PAGE))

    def test_mistake_is_told_and_nothing_is_kept(self, policy: Policy) -> None:
        client = signed_in(Role.EDITOR)
        client.post(f"{PAGE}save/", {"policy": "default", "query": "send", "others": "nowhere"})
        page = client.get(PAGE)
        assert "Not saved: expected: there is no tool nowhere." in visible_text(page)
        assert 'value="send"' in text_of(page)
        assert 'value="nowhere"' in text_of(page)
        assert 'value="nowhere"' not in text_of(client.get(PAGE))
        assert not SavedQuery.objects.exists()

    def test_unknown_policy_is_not_found(self) -> None:
        assert signed_in(Role.EDITOR).post(f"{PAGE}save/", {"policy": "gone"}).status_code == 404


class TestDeletingAndRunning:
    def test_deleted_query_can_be_had_back_from_the_toast(self, policy: Policy) -> None:
        saved = save(policy)
        client = signed_in(Role.EDITOR)
        page = client.post(f"{PAGE}{saved.pk}/delete/", follow=True)
        assert "Deleted “send message”." in visible_text(page)
        (message,) = page.context["messages"]
        client.post(f"/changes/{message.extra_tags}/undo/")
        assert SavedQuery.objects.get().query == "send message"

    def test_run_now_says_how_many_pass(self, policy: Policy) -> None:
        save(policy)
        page = signed_in(Role.EDITOR).post(f"{PAGE}run/", {"policy": "default"}, follow=True)
        assert "1 of 1 pass." in visible_text(page)

    def test_nothing_to_run_is_told(self) -> None:
        page = signed_in(Role.EDITOR).post(f"{PAGE}run/", {"policy": "default"}, follow=True)
        assert "Nothing was run" in visible_text(page)

    def test_missing_query_is_not_found(self) -> None:
        assert signed_in(Role.EDITOR).post(f"{PAGE}99/delete/").status_code == 404


class TestAccess:
    def test_viewer_looks_and_is_offered_nothing_else(self, policy: Policy) -> None:
        saved = save(policy)
        client = signed_in(Role.VIEWER)
        assert PAGE + "save/" not in text_of(client.get(PAGE))
        for path in (f"{PAGE}save/", f"{PAGE}run/", f"{PAGE}{saved.pk}/delete/"):
            assert client.post(path, {"policy": "default"}).status_code == 403
        assert SavedQuery.objects.exists()

    def test_needs_sign_in_a_role_and_the_right_method(self, client: Client) -> None:
        assert client.get(PAGE).status_code == 302
        assert signed_in(Role.NONE).get(PAGE).status_code == 403
        assert signed_in(Role.EDITOR).post(PAGE).status_code == 405
        assert signed_in(Role.EDITOR).get(f"{PAGE}run/").status_code == 405


def test_overview_and_its_part_tell_that_a_query_fails(policy: Policy) -> None:
    client = signed_in(Role.VIEWER)
    assert "See which, and since when" not in visible_text(client.get("/"))
    save(policy)
    assert "Saved queries 1 passes" in visible_text(client.get("/"))
    break_by_a_setting(policy)
    decisions.bring_up_to_date()
    saved_runs.run_policy(policy)
    assert "Saved queries 1 of 1 fails" in visible_text(client.get("/"))
    assert "Saved queries 1 of 1 fails" in visible_text(client.get("/", headers=HTMX))


class TestTwoEditors:
    """Who saves a query that another saved meanwhile is told, and changes nothing."""

    def save_from_a_form(self, version: str, expected: str) -> str:
        sent = {"policy": "default", "query": "send message", "expected": expected, "version": version}
        return visible_text(signed_in(Role.EDITOR).post("/console/saved/save/", sent, follow=True))

    def test_later_save_of_an_older_form_is_refused(self, policy: Policy) -> None:
        opened = saved_queries.version_of(None)
        save(policy, expected="list_channels")
        page = self.save_from_a_form(opened, "mcp__slack__send_message")
        assert "Not saved" in page
        assert "mcp__slack__list_channels" in page
        assert SavedQuery.objects.get().expected == ["mcp__slack__list_channels"]

    def test_form_that_is_up_to_date_is_saved(self, policy: Policy) -> None:
        opened = saved_queries.version_of(save(policy, expected="list_channels"))
        assert "Saved" in self.save_from_a_form(opened, "mcp__slack__send_message")
        assert SavedQuery.objects.get().expected == ["mcp__slack__send_message"]

    def test_form_of_a_new_query_does_not_replace_a_saved_one(self, policy: Policy) -> None:
        page = text_of(signed_in(Role.EDITOR).get("/console/saved/"))
        opened = saved_queries.version_of(None)
        assert f'name="version" value="{opened}"' in page
        save(policy, expected="list_channels")
        assert "Not saved" in self.save_from_a_form(opened, "mcp__slack__send_message")

    def test_form_has_the_version(self, policy: Policy) -> None:
        version = saved_queries.version_of(save(policy))
        page = text_of(signed_in(Role.EDITOR).get("/console/?q=send+message"))
        assert f'name="version" value="{version}"' in page


@pytest.mark.django_db(transaction=True, serialized_rollback=True)
def test_query_is_saved_in_a_transaction_of_its_own() -> None:
    """Where no test's transaction stands around it."""
    make_tool(server=make_server(name="slack"), name="send_message")
    policy = Policy.objects.get(slug="default")
    assert save(policy).expected == ["mcp__slack__send_message"]
