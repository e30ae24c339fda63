"""A patched offer equals one read from scratch, at the cost of the edit alone."""

from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from catalog.access.actors import COMMAND_LINE
from catalog.domain.choices import Loading, Transport
from catalog.domain.connection import ServerListing
from catalog.domain.decide import decide
from catalog.domain.definitions import Definition
from catalog.domain.facts import SessionFacts
from catalog.models import DecidedList, Job, Policy, Server, Tool, ToolRevision
from catalog.models.jobs import JobKind, JobState
from catalog.selectors.facts import read_facts, read_policy
from catalog.services import (
    decisions,
    jobs,
    policies,
    refresh,
    servers,
    tool_settings,
    tools,
)
from sessions.models import AgentSession
from sessions.offers import decided, offer_cache, tool_lists
from sessions.offers.builtins import read_builtins
from sessions.offers.offer import RENDERED, Offer
from sessions.offers.rendering import pieces
from sessions.offers.rendering.formats import Discovered, Format, Hosted, ListForm
from sessions.offers.tool_lists import ResolvedTools
from tests.harness.rows import make_policy, make_server, make_session, make_tool

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
    "by_server",
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
    offer_cache.offer_of_policy(Policy.objects.get(slug="default").pk)
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
    servers.set_enabled(server=row, enabled=False, actor=COMMAND_LINE)


def delete_server() -> None:
    servers.delete_server(server=Server.objects.get(name="github"), actor=COMMAND_LINE)


def defer_server() -> None:
    servers.set_defer_loading(
        server=Server.objects.get(name="github"), defer_loading=False, actor=COMMAND_LINE
    )


def describe_server() -> None:
    """What an admin does who writes a server's line for prompts."""
    Server.objects.filter(name="github").update(description="Repositories and issues. More.")
    decisions.request_new_lists()


def refresh_with_instructions() -> None:
    """What a refresh does that finds the same tools and other instructions."""
    server = Server.objects.get(name="github")
    Server.objects.filter(pk=server.pk).update(transport=Transport.STDIO, command="fixture")
    revisions = ToolRevision.objects.filter(tool__server=server, tool__gone_at=None)
    listed = {one.tool_id: one.definition for one in revisions.order_by("number")}
    listing = ServerListing(tuple(listed.values()), (), instructions="Repositories and issues. More.")
    job = refresh.request_refresh(server=server)
    handlers = {
        JobKind.REFRESH_SERVER: lambda held: refresh.run_refresh(held, list_tools=lambda *_, **__: listing)
    }
    assert jobs.run_job(job_id=job.pk, holder="worker", handlers=handlers)


def hold_back_changed() -> None:
    row = Policy.objects.get(slug="default")
    policies.change_policy(policy=row, changed={"quarantine": "changed"}, actor=COMMAND_LINE)
    decisions.bring_up_to_date()
    offer_cache.offer_of_policy(row.pk)
    change_definitions()


def pass_threshold() -> None:
    row = Policy.objects.get(slug="default")
    limit = {"mode": "auto", "threshold_unit": "tools", "threshold": 13}
    policies.change_policy(policy=row, changed=limit, actor=COMMAND_LINE)
    decisions.bring_up_to_date()
    offer_cache.offer_of_policy(row.pk)
    make_tool(server=make_server(name="one_more"), name="too_many")


def change_policy_before_its_decisions() -> None:
    row = Policy.objects.get(slug="default")
    policies.change_policy(policy=row, changed={"never_defer": ["github/*"]}, actor=COMMAND_LINE)
    offer_cache.offer_of_policy(row.pk)  # the new policy, still with the old decisions


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
    shown["meant"] = offer.names_meant(["tool_1", "mcp__slack__tool_2", "unknown"])
    shown["prompt"] = offer.prompt("search_tools")
    found = ResolvedTools(offer, offer.deferred[1:3])
    for form in FORMS:
        shown[form.key] = pieces.join_pieces(
            tool_lists.render_tool_list(found, form, session=None, version=1)
        )
    return shown


def drop_offers() -> None:
    """And keep the definitions, so that those of equal offers are the same."""
    offer_cache._plain.clear()
    offer_cache._own.clear()


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("is_derived_before", [True, False])
def test_offer_after_an_edit_equals_one_read_anew(
    policy: Policy, edit: Callable[[], None], is_derived_before: bool
) -> None:
    before = offer_cache.offer_of_policy(policy.pk)
    if is_derived_before:
        derive_everything(before)
    edit()
    decisions.bring_up_to_date()
    followed = derive_everything(offer_cache.offer_of_policy(policy.pk))
    texts = {tool.name: tool.text for tool in before.tools}  # alive, so that equal ones are the same
    drop_offers()
    assert followed == derive_everything(offer_cache.offer_of_policy(policy.pk))
    assert texts


def test_new_description_alone_reaches_every_process(policy: Policy) -> None:
    before = offer_cache.offer_of_policy(policy.pk)
    describe_server()
    assert Job.objects.filter(kind=JobKind.DECIDE, state=JobState.WAITING).exists()
    decisions.bring_up_to_date()
    followed = offer_cache.offer_of_policy(policy.pk)
    assert "Repositories and issues." in followed.prompt("search_tools")
    assert followed.versions != before.versions
    offer_cache.clear()
    assert offer_cache.offer_of_policy(policy.pk).digest == followed.digest != before.digest


def test_what_a_server_says_of_itself_changes_no_offer(policy: Policy) -> None:
    before = offer_cache.offer_of_policy(policy.pk)
    refresh_with_instructions()
    decisions.bring_up_to_date()
    after = offer_cache.offer_of_policy(policy.pk)
    assert after.versions == before.versions
    assert "Repositories" not in after.prompt("search_tools")


def test_many_edits_one_after_the_other(policy: Policy) -> None:
    for edit in (load_always, change_definitions, hide, add_server, disable_server, describe_server):
        edit()
        decisions.bring_up_to_date()
        followed = derive_everything(offer_cache.offer_of_policy(policy.pk))
    drop_offers()
    assert followed == derive_everything(offer_cache.offer_of_policy(policy.pk))


def test_edit_of_what_is_not_sent_shares_everything(policy: Policy) -> None:
    before = offer_cache.offer_of_policy(policy.pk)
    derive_everything(before)
    set_keywords()
    decisions.bring_up_to_date()
    after = offer_cache.offer_of_policy(policy.pk)
    assert after.versions != before.versions
    assert after.tools is before.tools
    assert after.chunks("deferred") is before.chunks("deferred")


def test_only_the_touched_tools_are_read(
    policy: Policy, monkeypatch: pytest.MonkeyPatch, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    offer_cache.offer_of_policy(policy.pk)
    load_always()
    decisions.bring_up_to_date()
    monkeypatch.setattr(decided, "read_all", None)
    with django_assert_max_num_queries(9):
        after = offer_cache.offer_of_policy(policy.pk)
    assert [tool.name for tool in after.always] == ["mcp__files__tool_0", "mcp__github__tool_1"]


def test_too_many_touched_tools_are_all_read(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decided, "LARGEST_CHANGE_TOOLS", 1)
    offer_cache.offer_of_policy(policy.pk)
    load_always()
    decisions.bring_up_to_date()
    assert len(offer_cache.offer_of_policy(policy.pk).always) == 2


def test_versions_that_went_back_are_read_anew(policy: Policy) -> None:
    offer_cache.offer_of_policy(policy.pk)
    hide()
    decisions.bring_up_to_date()
    offer_cache.offer_of_policy(policy.pk)
    Tool.objects.update(hidden=False, facts_version=1)
    DecidedList.objects.update(catalog_version=0)
    decisions.bring_up_to_date()
    DecidedList.objects.update(catalog_version=1, version=1)
    assert "mcp__slack__tool_3" in offer_cache.offer_of_policy(policy.pk).by_name


class TestOfferOfItsOwn:
    @pytest.fixture
    def session(self, policy: Policy) -> AgentSession:
        return make_session(policy=policy, visible=["github/*"])

    def test_stays_while_nothing_that_is_sent_changes(self, session: AgentSession) -> None:
        before = offer_cache.offer_of_session(session)
        set_keywords()
        decisions.bring_up_to_date()
        after = offer_cache.offer_of_session(session)
        assert after.tools is before.tools
        assert after.versions == offer_cache.offer_of_policy(session.policy_id).versions != before.versions

    @pytest.mark.parametrize("edit", EDITS)
    def test_after_an_edit_equals_one_made_anew(
        self, session: AgentSession, edit: Callable[[], None]
    ) -> None:
        kept = offer_cache.offer_of_session(session)
        edit()
        decisions.bring_up_to_date()
        followed = derive_everything(offer_cache.offer_of_session(session))
        drop_offers()
        assert followed == derive_everything(offer_cache.offer_of_session(session))
        assert kept


class TestWhatAProcessKeeps:
    """Bytes are counted, not offers: the longest unused goes first."""

    @pytest.fixture
    def own(self, policy: Policy, monkeypatch: pytest.MonkeyPatch) -> offer_cache.OfferCache:
        cache = offer_cache.OfferCache(40_000)
        monkeypatch.setattr(offer_cache, "_own", cache)
        return cache

    def test_own_offers_stay_within_their_bytes(self, policy: Policy, own: offer_cache.OfferCache) -> None:
        sessions = [make_session(policy=policy, visible=["github/*", f"x{number}"]) for number in range(20)]
        made = [offer_cache.offer_of_session(session) for session in sessions]
        assert 0 < own.bytes <= 40_000
        assert offer_cache.offer_of_session(sessions[-1]) is made[-1]
        assert offer_cache.offer_of_session(sessions[0]) is not made[0]

    def test_many_short_lists_take_the_room_of_few_long_ones(self, policy: Policy) -> None:
        short = offer_cache.offer_of_session(make_session(policy=policy, visible=["github/*"]))
        definition = {"name": "bash", "description": "x" * 100_000}
        long = offer_cache.offer_of_session(make_session(policy=policy, builtin_tools=[definition]))
        assert long.count_bytes() > short.count_bytes() + 100_000

    def test_one_offer_larger_than_all_room_serves_while_it_is_used(
        self, policy: Policy, own: offer_cache.OfferCache
    ) -> None:
        definition = {"name": "bash", "description": "x" * 100_000}
        session = make_session(policy=policy, builtin_tools=[definition])
        assert offer_cache.offer_of_session(session) is offer_cache.offer_of_session(session)

    def test_crowd_of_sessions_leaves_the_offers_of_policies(
        self, policy: Policy, own: offer_cache.OfferCache
    ) -> None:
        plain = offer_cache.offer_of_policy(policy.pk)
        for number in range(20):
            offer_cache.offer_of_session(make_session(policy=policy, visible=["github/*", f"x{number}"]))
        assert offer_cache.offer_of_policy(policy.pk) is plain

    def test_session_that_sees_everything_shares_the_policys_lists(self, policy: Policy) -> None:
        offer = offer_cache.offer_of_session(make_session(policy=policy, visible=["*", "unknown"]))
        assert offer.tools is offer_cache.offer_of_policy(policy.pk).tools

    def test_lists_of_the_same_tools_are_written_once(self, policy: Policy) -> None:
        narrow = [make_session(policy=policy, visible=["github/*", f"x{number}"]) for number in range(5)]
        first, *others = (offer_cache.offer_of_session(session) for session in narrow)
        pieces.join_pieces(
            tool_lists.render_tool_list(
                ResolvedTools(first), ListForm(Format.ANTHROPIC), session=None, version=1
            )
        )
        before = RENDERED.bytes
        for offer in others:
            tool_lists.render_tool_list(
                ResolvedTools(offer), ListForm(Format.ANTHROPIC), session=None, version=1
            )
        assert RENDERED.bytes == before > 0


class TestPolicyThatNoWorkerHasDecided:
    """A session that begins at once sees what it will see when the worker has decided."""

    @pytest.fixture
    def undecided(self, policy: Policy) -> Policy:
        return make_policy(slug="new", mode="auto", threshold_unit="context_percent", threshold=0)

    @pytest.mark.parametrize(
        "own", [{"builtin_tools": [{"name": "bash"}]}, {"visible": ["*_1", "*_2"]}, {"context_window": 1000}]
    )
    def test_own_offer_is_that_of_the_decided_policy(self, undecided: Policy, own: dict[str, Any]) -> None:
        session = make_session(policy=undecided, **own)
        early = offer_cache.offer_of_session(session)
        decisions.bring_up_to_date()
        later = offer_cache.offer_of_session(session)
        assert early.is_active
        assert {"mcp__github__tool_1", "mcp__slack__tool_2"} <= set(early.by_name)
        assert derive_everything(early) | {"versions": later.versions} == derive_everything(later)
        offer_cache.clear()
        anew = offer_cache.offer_of_session(session)
        assert (anew.digest, list(anew.by_name)) == (later.digest, list(later.by_name))


@pytest.mark.parametrize("threshold", [1, 6, 7, 100])
@pytest.mark.parametrize("visible", [None, ["github/*", "bash"], ["*_1", "read"]])
def test_own_offer_is_what_the_rules_decide(
    policy: Policy, threshold: int, visible: list[str] | None
) -> None:
    limit = {"mode": "auto", "threshold_unit": "tools", "threshold": threshold}
    by_name = {"never_defer": ["tool_2"], "always_defer": ["slack/tool_3"]}
    policies.change_policy(policy=policy, changed={**limit, **by_name}, actor=COMMAND_LINE)
    load_always()
    defer_server()
    decisions.bring_up_to_date()
    own: list[dict[str, Any]] = [{"name": "bash"}, {"name": "read", "shouldDefer": True}]
    session = make_session(policy=policy, visible=visible, builtin_tools=own)
    offer = offer_cache.offer_of_session(session)
    facts = [known.facts for known in read_facts(Tool.objects.listed())]
    facts += [tool.facts for tool in read_builtins(own, taken=())]
    seen = SessionFacts(visible=() if visible is None else (tuple(visible),))
    expected = decide(facts, read_policy(Policy.objects.get(pk=policy.pk)), seen)
    assert [(tool.name, tool.outcome, tool.reason) for tool in offer.tools] == [
        (one.name, one.outcome, one.reason) for one in expected.decisions
    ]
