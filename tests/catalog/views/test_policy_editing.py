"""Editing policies in the console: preview, save, versions, new ones, deleting."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from catalog.access.actors import COMMAND_LINE
from catalog.access.roles import Role
from catalog.forms.policies import PolicyForm
from catalog.models import Change, Job, Policy, PolicyVersion
from catalog.models.jobs import JobKind
from catalog.selectors.facts import read_policy
from catalog.services import decisions, policies
from sessions.offers import offer_cache
from sessions.offers.tool_lists import ResolvedTools
from tests.harness.pages import HTMX, broken_rules, signed_in, text_of, visible_text
from tests.harness.rows import make_key, make_policy, make_server, make_tool

pytestmark = pytest.mark.django_db

EDIT, PREVIEW = "/policies/default/edit/", "/policies/default/preview/"


def values_of(policy: Policy, **changed: object) -> dict[str, object]:
    """What the browser would send for the form as it stands, and with what one typed."""
    form = PolicyForm.of(read_policy(policy))
    values = {name: form[name].value() for name in form.fields}
    sent = {name: "\n".join(value) if isinstance(value, list) else value for name, value in values.items()}
    return {name: value for name, value in (sent | changed).items() if value not in (None, False)}


def default() -> Policy:
    return Policy.objects.get(slug="default")


class TestEditor:
    def test_form_left_as_it_is_changes_nothing(self) -> None:
        policy = make_policy(slug="mine", visible=[], never_defer=["a", "b/*"], threshold=2.5, max_results=7)
        response = signed_in(Role.EDITOR).post("/policies/mine/edit/", values_of(policy), follow=True)
        assert "nothing was saved" in visible_text(response)
        assert not PolicyVersion.objects.exists()

    def test_saves_every_kind_of_value(self) -> None:
        changed = {
            "mode": "auto",
            "threshold_unit": "tokens",
            "threshold": "12,500",
            "never_defer": " github/* \n\nread_file",
            "shown": "some",
            "visible": "mcp__*",
            "defer_builtins": "on",
            "score_cutoff": "0.5",
            "meaning_floor": "0.42",
            "session_ttl": "12 hours",
        }
        response = signed_in(Role.EDITOR).post(EDIT, values_of(default(), **changed), follow=True)
        assert "Saved the policy default" in visible_text(response)
        saved = read_policy(default())
        assert (saved.mode, saved.threshold_unit, saved.threshold) == ("auto", "tokens", 12_500)
        assert (saved.never_defer, saved.visible) == (("github/*", "read_file"), ("mcp__*",))
        assert (saved.defer_builtins, saved.score_cutoff, saved.meaning_floor) == (True, 0.5, 0.42)
        assert saved.session_ttl.total_seconds() == 12 * 3600
        assert Job.objects.get().kind == JobKind.DECIDE

    def test_gateways_fields_are_saved_without_any_flip(self) -> None:
        make_tool()
        decisions.bring_up_to_date()
        client = signed_in(Role.ADMIN)
        changed = {
            "exposure": "native",
            "call_timeout_seconds": "1,800",
            "max_result_tokens": "0",
            "record_calls": "full",
        }
        look = client.post(PREVIEW, values_of(default(), **changed), headers=HTMX)
        assert "Nothing changes" in visible_text(look)
        client.post(EDIT, values_of(default(), **changed))
        saved = read_policy(default())
        assert (saved.exposure, saved.record_calls) == ("native", "full")
        assert (saved.call_timeout_seconds, saved.max_result_tokens) == (1800, 0)
        assert not Job.objects.exists()

    def test_editor_is_told_beside_the_field_what_is_for_admins(self) -> None:
        client = signed_in(Role.EDITOR)
        for field, value in (("record_calls", "full"), ("quarantine", "changed")):
            response = client.post(EDIT, values_of(default(), **{field: value}))
            assert response.status_code == 422
            assert list(response.context["form"].errors) == [field]
        policies.change_policy(policy=default(), changed={"record_calls": "full"}, actor=COMMAND_LINE)
        response = client.post("/new-policy/", {"slug": "copy", "source": "default"})
        assert response.status_code == 422
        assert list(response.context["form"].errors) == ["source"]
        assert not Policy.objects.filter(slug="copy").exists()

    def test_nothing_visible_is_not_everything_visible(self) -> None:
        client = signed_in(Role.EDITOR)
        client.post(EDIT, values_of(default(), shown="some"))
        assert default().visible == []
        client.post(EDIT, values_of(default(), shown="all"))
        assert default().visible is None

    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            ({"max_results": "51"}, "Must be a number from 1 to 50"),
            ({"call_timeout_seconds": "3601"}, "Must be a number from 1 to 3,600"),
            ({"meaning_floor": "1.5"}, "Must be a number from 0 to 1"),
            ({"exposure": "all"}, "Select a valid choice"),
            ({"max_results": "many"}, "Must be a number, not text"),
            ({"threshold": "nan"}, "Must be a number from 0"),
            ({"threshold_unit": "context_percent", "threshold": "101"}, "Must be a percentage"),
            ({"session_ttl": "a while"}, "Must be a number of seconds, or a duration"),
            ({"search_tool_name": "two words"}, "Must be 1 to 64 letters"),
            ({"mode": "sometimes"}, "Select a valid choice"),
            ({"never_defer": "x" * 300}, "Must have 1 to 256 characters"),
        ],
    )
    def test_mistake_is_told_beside_its_field(self, changed: dict[str, str], message: str) -> None:
        response = signed_in(Role.EDITOR).post(EDIT, values_of(default(), **changed))
        assert response.status_code == 422
        assert message in visible_text(response)
        assert not broken_rules(response)
        assert "Nothing was saved" in visible_text(response)
        assert set(response.context["form"].errors) <= set(changed)
        assert default().version == 1

    def test_opens_with_a_preview_of_no_change(self) -> None:
        make_tool()
        page = signed_in(Role.EDITOR).get(EDIT)
        assert "Nothing changes" in visible_text(page)
        assert not broken_rules(page)

    def test_name_of_a_tool_is_refused_for_the_search_tool(self) -> None:
        tool = make_tool(server=make_server(name="s"), name="find")
        values = values_of(default(), search_tool_name=tool.qualified_name)
        response = signed_in(Role.EDITOR).post(EDIT, values)
        assert response.status_code == 422
        assert "the search tool needs one of its own" in visible_text(response)
        assert default().version == 1

    def test_save_can_be_undone_from_its_toast(self) -> None:
        client = signed_in(Role.EDITOR)
        response = client.post(EDIT, values_of(default(), mode="off"), follow=True)
        client.post(f"/changes/{Change.objects.get().pk}/undo/")
        assert f"/changes/{Change.objects.earliest('pk').pk}/undo/" in text_of(response)
        assert default().mode == "always"

    def test_version_is_opened_with_what_going_back_would_flip(self) -> None:
        make_tool()
        policies.change_policy(policy=default(), changed={"mode": "off"}, actor=COMMAND_LINE)
        client = signed_in(Role.EDITOR)
        page = client.get(f"{EDIT}?version=1")
        assert "As it was in version 1" in visible_text(page)
        assert "1 tool changes" in visible_text(page)
        assert page.context["form"]["mode"].value() == "always"
        assert default().mode == "off"
        for unknown in ("7", "x"):
            assert client.get(f"{EDIT}?version={unknown}").status_code == 404

    def test_others_are_refused(self, client: Client) -> None:
        assert client.get(EDIT).status_code == 302
        assert signed_in(Role.VIEWER).get(EDIT).status_code == 403
        assert signed_in(Role.VIEWER).post(EDIT, values_of(default(), mode="off")).status_code == 403
        assert signed_in(Role.EDITOR).delete(EDIT).status_code == 405
        assert signed_in(Role.EDITOR).get("/policies/nothing/edit/").status_code == 404
        assert default().mode == "always"


class TestPatterns:
    def preview(self, **changed: object) -> str:
        response = signed_in(Role.EDITOR).post(PREVIEW, values_of(default(), **changed), headers=HTMX)
        return visible_text(response)

    def test_pattern_that_matches_nothing_gets_a_remark_with_what_was_meant(self) -> None:
        make_tool(server=make_server(name="github"), name="create_issue")
        page = self.preview(never_defer="github__create_*\nmcp__github__*\nzebra")
        assert "No tool of the catalog matches these patterns" in page
        assert "github__create_* in Never defer Tools match mcp__github__create_*" in page
        assert "zebra in Never defer" in page
        assert "mcp__github__* in" not in page

    def test_no_remark_where_all_match_or_none_counts(self) -> None:
        make_tool(server=make_server(name="github"), name="create_issue")
        assert "No tool of the catalog" not in self.preview(
            never_defer="github/*", visible="zebra", shown="all"
        )
        assert "No tool of the catalog" not in self.preview(never_defer="zebra", mode="off")
        assert "zebra in Visible" in self.preview(visible="zebra", shown="some")

    def test_syntax_is_said_beside_the_field(self) -> None:
        page = text_of(signed_in(Role.EDITOR).get(EDIT))
        for field in ("never_defer", "always_defer", "visible"):
            help_text = page.split(f'id="id_{field}_helptext"')[1].split("</div>")[0]
            assert "* stands for any text" in help_text

    def test_fields_say_when_they_count(self) -> None:
        page = text_of(signed_in(Role.EDITOR).get(EDIT))
        assert page.count('data-counts-when="mode=auto"') == 2
        assert page.count('data-counts-when="shown=some"') == 1

    def test_edits_are_guarded_and_those_of_a_refused_form_at_once(self) -> None:
        client = signed_in(Role.EDITOR)
        assert 'data-guards-edits=""' in text_of(client.get(EDIT))
        refused = client.post(EDIT, values_of(default(), max_results="0"))
        assert 'data-guards-edits="edited"' in text_of(refused)


class TestPreview:
    def test_tells_what_flips_by_server_and_stores_nothing(self) -> None:
        make_tool(server=make_server(name="github"), name="read", description="x" * 3994)
        decisions.bring_up_to_date()
        response = signed_in(Role.EDITOR).post(PREVIEW, values_of(default(), mode="off"), headers=HTMX)
        page = visible_text(response)
        assert "<html" not in text_of(response)
        now = ResolvedTools(offer_cache.offer_of_policy(default().pk)).tokens()["sent"]
        assert f"{now} → 1,000 tokens (+{1000 - now})" in page
        assert "1 tool changes." in page
        assert "github +1 – +1,000" in page
        assert f"Search tool and prompt – – −{now}" in page
        assert "mcp__github__read loads: search is off in this policy" in page
        assert default().mode == "always"

    def test_says_what_agents_would_pay_search_tool_and_prompt_included(self) -> None:
        make_tool(server=make_server(name="github"), name="read", description="x" * 3994)
        decisions.bring_up_to_date()
        proposed = values_of(default(), prompt_budget_tokens="0", max_results="50")
        page = visible_text(signed_in(Role.EDITOR).post(PREVIEW, proposed, headers=HTMX))
        now = ResolvedTools(offer_cache.offer_of_policy(default().pk)).tokens()["sent"]
        policies.change_policy(
            policy=default(), changed={"prompt_budget_tokens": 0, "max_results": 50}, actor=COMMAND_LINE
        )
        then = ResolvedTools(offer_cache.offer_of_policy(default().pk)).tokens()["sent"]
        assert now > then > 0
        assert f"{now} → {then} tokens (−{now - then}) Nothing changes" in page

    def test_reads_no_definition_that_the_process_knows(self) -> None:
        make_tool(server=make_server(name="github"), name="read")
        decisions.bring_up_to_date()
        client, proposed = signed_in(Role.EDITOR), values_of(default(), mode="off")
        client.post(PREVIEW, proposed, headers=HTMX)
        with CaptureQueriesContext(connection) as queries:
            client.post(PREVIEW, proposed, headers=HTMX)
        assert not [query for query in queries if "output_schema" in query["sql"]]

    def test_warns_where_deferring_would_cost_more_than_it_saves(self) -> None:
        make_tool(server=make_server(name="github"), name="read", description="Read.")
        Policy.objects.update(mode="off")
        decisions.bring_up_to_date()
        warning = "Deferring costs"
        client = signed_in(Role.EDITOR)
        proposed = values_of(default(), mode="always")
        assert warning in visible_text(client.post(PREVIEW, proposed, headers=HTMX))
        assert warning not in visible_text(client.post(PREVIEW, values_of(default()), headers=HTMX))

    def test_draws_the_curve_with_the_present_value(self) -> None:
        make_tool(name="read", description="x" * 3994)
        changed = {"mode": "auto", "threshold": "1000"}
        response = signed_in(Role.EDITOR).post(PREVIEW, values_of(default(), **changed), headers=HTMX)
        chart = response.context["chart"]
        assert [bar.is_in_force for bar in chart.bars] == [True, False]
        assert (chart.mark_percent, chart.saved_percent) == (8.0, 80.0)
        assert [bar.x_percent for bar in chart.bars] == [0.0, 32.0]
        sent = ResolvedTools(offer_cache.offer_of_policy(default().pk)).tokens()["sent"]
        assert (
            f"Below 4,000 characters, 1 tool waits and {sent} tokens are sent; from there on 1,000"
            in visible_text(response)
        )

    def test_saved_threshold_stays_on_the_curve_while_another_is_tried(self) -> None:
        make_tool(name="read", description="x" * 3994)
        client, here = signed_in(Role.EDITOR), values_of(default(), threshold="10000")
        moved = client.post(PREVIEW, {**here, "threshold": "20000"}, headers=HTMX)
        assert (moved.context["chart"].mark_percent, moved.context["chart"].saved_percent) == (80.0, 40.0)
        assert "now 10,000" in visible_text(moved)
        assert "now 10,000" not in visible_text(client.post(PREVIEW, here, headers=HTMX))
        other_unit = client.post(PREVIEW, {**here, "threshold_unit": "tools", "threshold": "3"}, headers=HTMX)
        assert other_unit.context["chart"].saved_percent is None

    def test_mistake_is_part_of_the_answer(self) -> None:
        values = values_of(default(), max_results="99", mode="sometimes")
        response = signed_in(Role.EDITOR).post(PREVIEW, values, headers=HTMX)
        assert response.status_code == 200
        assert "Mode : Select a valid choice" in visible_text(response)
        values = values_of(default(), max_results="99")
        response = signed_in(Role.EDITOR).post(PREVIEW, values, headers=HTMX)
        assert "Results : Must be a number from 1 to 50" in visible_text(response)

    def test_without_script_it_is_a_page_that_keeps_what_was_typed(self) -> None:
        response = signed_in(Role.EDITOR).post(PREVIEW, values_of(default(), threshold="777"))
        assert "<html" in text_of(response)
        assert 'value="777"' in text_of(response)

    def test_others_are_refused(self, client: Client) -> None:
        assert client.post(PREVIEW).status_code == 302
        assert signed_in(Role.VIEWER).post(PREVIEW).status_code == 403
        assert signed_in(Role.EDITOR).get(PREVIEW).status_code == 405
        assert signed_in(Role.EDITOR).post("/policies/nothing/preview/").status_code == 404


class TestCreate:
    def test_copies_a_policy_and_opens_the_editor(self) -> None:
        make_policy(slug="source", max_results=9)
        response = signed_in(Role.EDITOR).post("/new-policy/", {"slug": "mine", "source": "source"})
        assert response.headers["Location"] == "/policies/mine/edit/"
        assert Policy.objects.get(slug="mine").max_results == 9

    @pytest.mark.parametrize(
        ("slug", "message"), [("default", "There is a policy default already"), ("a b", "Must be 1 to 64")]
    )
    def test_name_that_cannot_be_is_told(self, slug: str, message: str) -> None:
        response = signed_in(Role.EDITOR).post("/new-policy/", {"slug": slug, "source": "default"})
        assert response.status_code == 422
        assert message in visible_text(response)
        assert Policy.objects.count() == 1

    def test_page_and_refusals(self, client: Client) -> None:
        page = signed_in(Role.EDITOR).get("/new-policy/")
        assert page.status_code == 200
        assert not broken_rules(page)
        assert client.get("/new-policy/").status_code == 302
        assert signed_in(Role.VIEWER).post("/new-policy/", {"slug": "x"}).status_code == 403
        assert signed_in(Role.EDITOR).delete("/new-policy/").status_code == 405


class TestRollBack:
    ADDRESS = "/policies/default/roll-back/"

    def test_makes_the_policy_what_it_was(self) -> None:
        policies.change_policy(policy=default(), changed={"mode": "off"}, actor=COMMAND_LINE)
        client = signed_in(Role.EDITOR)
        response = client.post(self.ADDRESS, {"number": "1"}, follow=True)
        assert "again what it was in version 1" in visible_text(response)
        assert (default().mode, default().version) == ("always", 3)
        assert "already" in visible_text(client.post(self.ADDRESS, {"number": "1"}, follow=True))

    @pytest.mark.parametrize(("number", "status"), [("9", 404), ("", 422), ("x", 422)])
    def test_version_that_is_not_there(self, number: str, status: int) -> None:
        assert signed_in(Role.EDITOR).post(self.ADDRESS, {"number": number}).status_code == status

    def test_others_are_refused(self, client: Client) -> None:
        assert client.post(self.ADDRESS).status_code == 302
        assert signed_in(Role.VIEWER).post(self.ADDRESS, {"number": "1"}).status_code == 403
        assert signed_in(Role.EDITOR).get(self.ADDRESS).status_code == 405
        assert signed_in(Role.EDITOR).post("/policies/nothing/roll-back/", {"number": "1"}).status_code == 404


class TestDelete:
    def test_needs_the_name_typed(self) -> None:
        make_policy(slug="mine")
        client = signed_in(Role.ADMIN)
        response = client.post("/policies/mine/delete/", {"confirm": "min"}, follow=True)
        assert "Nothing was deleted: type mine" in visible_text(response)
        response = client.post("/policies/mine/delete/", {"confirm": "mine"}, follow=True)
        assert "The policy mine is deleted." in visible_text(response)
        assert not Policy.objects.filter(slug="mine").exists()

    def test_policy_in_use_stays_and_says_why(self) -> None:
        make_key(policy=make_policy(slug="mine"))
        response = signed_in(Role.ADMIN).post("/policies/mine/delete/", {"confirm": "mine"}, follow=True)
        assert "Nothing was deleted: keys or sessions use the policy mine." in visible_text(response)
        assert Policy.objects.filter(slug="mine").exists()

    def test_others_are_refused(self, client: Client) -> None:
        make_policy(slug="mine")
        address, values = "/policies/mine/delete/", {"confirm": "mine"}
        assert client.post(address, values).status_code == 302
        assert signed_in(Role.EDITOR).post(address, values).status_code == 403
        assert signed_in(Role.ADMIN).get(address).status_code == 405
        assert signed_in(Role.ADMIN).post("/policies/nothing/delete/").status_code == 404
        assert Policy.objects.filter(slug="mine").exists()
