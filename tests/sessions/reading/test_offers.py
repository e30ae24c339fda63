"""An offer that follows an edit is the one that reading everything anew would give, at the edit's cost."""

from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from catalog.domain.choices import Loading
from catalog.domain.definitions import Definition
from catalog.models import DecidedList, Policy, Server, Tool
from catalog.services import decisions, policies, server_settings, servers, tool_settings, tools
from catalog.services.changes import COMMAND_LINE
from sessions.domain import pieces
from sessions.domain.formats import Discovered, Format, Hosted, ListForm
from sessions.models import AgentSession
from sessions.reading import decided, offers, tool_lists
from sessions.reading.offer import Offer
from sessions.reading.tool_lists import Standing
from tests.rows import make_server, make_session, make_tool

pytestmark = pytest.mark.django_db

FORMS = (
    ListForm(),
    ListForm(Format.STUB),
    ListForm(Format.ANTHROPIC),
    ListForm(Format.OPENAI),
    ListForm(Format.OPENAI, Hosted.YES),
    ListForm(Format.MCP, Hosted.NO, Discovered.FULL),
)
DERIVED = (
    "digest",
    "tools",
    "always",
    "deferred",
    "by_name",
    "by_id",
    "by_server",
    "names_by_own_name",
    "deferred_by_server",
    "deferred_servers",
    "all_chars",
    "always_chars",
    "stub_chars",
    "locked",
    "versions",
)


@pytest.fixture
def policy() -> Policy:
    for server in ("files", "github", "slack"):
        row = make_server(name=server)
        for number in range(4):
            make_tool(server=row, name=f"tool_{number}", description=f"Does {number}. More.")
    decisions.bring_up_to_date()
    return Policy.objects.get(slug="default")


def change(name: str, **wanted: Any) -> None:
    tool = Tool.objects.get(qualified_name=name)
    tool_settings.change_tool(tool=tool, actor=COMMAND_LINE, **wanted)


def list_again(server: str, *definitions: Definition) -> None:
    """What a refresh does."""
    row = Server.objects.get(name=server)
    tools.store_definitions(server=row, definitions=definitions, now=timezone.now())


def set_keywords() -> None:
    change("mcp__github__tool_1", keywords=["pull request"])


def load_always() -> None:
    change("mcp__github__tool_1", loading=Loading.ALWAYS)
    change("mcp__files__tool_0", loading=Loading.ALWAYS)


def defer_again() -> None:
    load_always()
    decisions.bring_up_to_date()
    offers.offer_of_policy(Policy.objects.get(slug="default").pk)
    change("mcp__github__tool_1", loading=Loading.DEFER)


def hide() -> None:
    change("mcp__slack__tool_3", hidden=True)


def change_definitions() -> None:
    kept = [Definition(name=f"tool_{number}", description=f"Does {number}. More.") for number in (0, 3)]
    list_again(
        "github", *kept, Definition(name="tool_1", description="Another."), Definition(name="a_new_one")
    )


def add_server() -> None:
    make_tool(server=make_server(name="aaa"), name="first")
    make_tool(server=make_server(name="zzz"), name="last")


def disable_server() -> None:
    row = Server.objects.get(name="github")
    server_settings.set_enabled(server=row, enabled=False, actor=COMMAND_LINE)


def delete_server() -> None:
    server_settings.delete_server(server=Server.objects.get(name="github"), actor=COMMAND_LINE)


def defer_server() -> None:
    servers.set_defer_loading(
        server=Server.objects.get(name="github"), defer_loading=False, actor=COMMAND_LINE
    )


def describe_server() -> None:
    Server.objects.filter(name="github").update(description="Repositories and issues.")
    set_keywords()


def hold_back_changed() -> None:
    row = Policy.objects.get(slug="default")
    policies.change_policy(policy=row, changed={"quarantine": "changed"}, actor=COMMAND_LINE)
    decisions.bring_up_to_date()
    offers.offer_of_policy(row.pk)
    change_definitions()


def pass_threshold() -> None:
    row = Policy.objects.get(slug="default")
    limit = {"mode": "auto", "threshold_unit": "tools", "threshold": 13}
    policies.change_policy(policy=row, changed=limit, actor=COMMAND_LINE)
    decisions.bring_up_to_date()
    offers.offer_of_policy(row.pk)
    make_tool(server=make_server(name="one_more"), name="too_many")


def change_policy_before_its_decisions() -> None:
    row = Policy.objects.get(slug="default")
    policies.change_policy(policy=row, changed={"never_defer": ["github/*"]}, actor=COMMAND_LINE)
    offers.offer_of_policy(row.pk)  # the new policy, still with the old decisions


EDITS: tuple[Callable[[], None], ...] = (
    set_keywords,
    load_always,
    defer_again,
    hide,
    change_definitions,
    add_server,
    disable_server,
    delete_server,
    defer_server,
    describe_server,
    hold_back_changed,
    pass_threshold,
    change_policy_before_its_decisions,
)


def derive_everything(offer: Offer) -> dict[str, Any]:
    shown = {name: getattr(offer, name) for name in DERIVED}
    shown["visible"] = sorted(offer.visible.ids.tolist())
    shown["prompt"] = offer.prompt("search_tools")
    found = Standing(offer, offer.deferred[1:3])
    for form in FORMS:
        shown[form.key] = pieces.join(tool_lists.render(found, form, session=None, version=1))
    return shown


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("is_derived_before", [True, False])
def test_offer_after_an_edit_equals_one_read_anew(
    policy: Policy, edit: Callable[[], None], is_derived_before: bool
) -> None:
    before = offers.offer_of_policy(policy.pk)
    if is_derived_before:
        derive_everything(before)
    edit()
    decisions.bring_up_to_date()
    followed = derive_everything(offers.offer_of_policy(policy.pk))
    texts = {tool.name: tool.text for tool in before.tools}  # alive, so that equal ones are the same
    offers._shelf.clear()
    assert followed == derive_everything(offers.offer_of_policy(policy.pk))
    assert texts


def test_many_edits_one_after_the_other(policy: Policy) -> None:
    for edit in (load_always, change_definitions, hide, add_server, disable_server, describe_server):
        edit()
        decisions.bring_up_to_date()
        followed = derive_everything(offers.offer_of_policy(policy.pk))
    offers._shelf.clear()
    assert followed == derive_everything(offers.offer_of_policy(policy.pk))


def test_edit_of_what_is_not_sent_shares_everything(policy: Policy) -> None:
    before = offers.offer_of_policy(policy.pk)
    derive_everything(before)
    set_keywords()
    decisions.bring_up_to_date()
    after = offers.offer_of_policy(policy.pk)
    assert after.versions != before.versions
    assert after.tools is before.tools
    assert after.columns is before.columns


def test_only_the_touched_tools_are_read(
    policy: Policy, monkeypatch: pytest.MonkeyPatch, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    offers.offer_of_policy(policy.pk)
    load_always()
    decisions.bring_up_to_date()
    monkeypatch.setattr(decided, "read_all", None)
    with django_assert_max_num_queries(9):
        after = offers.offer_of_policy(policy.pk)
    assert [tool.name for tool in after.always] == ["mcp__files__tool_0", "mcp__github__tool_1"]


def test_too_many_touched_tools_are_all_read(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decided, "LARGEST_CHANGE_TOOLS", 1)
    offers.offer_of_policy(policy.pk)
    load_always()
    decisions.bring_up_to_date()
    assert len(offers.offer_of_policy(policy.pk).always) == 2


def test_versions_that_went_back_are_read_anew(policy: Policy) -> None:
    offers.offer_of_policy(policy.pk)
    hide()
    decisions.bring_up_to_date()
    offers.offer_of_policy(policy.pk)
    Tool.objects.update(hidden=False, facts_version=1)
    DecidedList.objects.update(catalog_version=0)
    decisions.bring_up_to_date()
    DecidedList.objects.update(catalog_version=1, version=1)
    assert "mcp__slack__tool_3" in offers.offer_of_policy(policy.pk).by_name


class TestOfferOfItsOwn:
    @pytest.fixture
    def session(self, policy: Policy) -> AgentSession:
        return make_session(policy=policy, visible=["github/*"])

    def test_stays_while_nothing_that_is_sent_changes(self, session: AgentSession) -> None:
        before = offers.offer_of_session(session)
        set_keywords()
        decisions.bring_up_to_date()
        after = offers.offer_of_session(session)
        assert after.tools is before.tools
        assert after.versions == offers.offer_of_policy(session.policy_id).versions != before.versions

    @pytest.mark.parametrize("edit", EDITS)
    def test_after_an_edit_equals_one_made_anew(
        self, session: AgentSession, edit: Callable[[], None]
    ) -> None:
        kept = offers.offer_of_session(session)
        edit()
        decisions.bring_up_to_date()
        followed = derive_everything(offers.offer_of_session(session))
        offers._shelf.clear()
        offers._facts.clear()
        assert followed == derive_everything(offers.offer_of_session(session))
        assert kept
