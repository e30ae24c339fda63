"""Every policy's decided list follows the catalog and the policy, by what a change touched."""

import random

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from catalog.domain.choices import Loading
from catalog.domain.decide import decide
from catalog.domain.definitions import Definition
from catalog.models import DecidedList, Decision, Policy, Server, Tool
from catalog.selectors import decisions as selector
from catalog.selectors.decisions import read_decided
from catalog.selectors.facts import read_facts, read_policy
from catalog.services import decisions, policies, servers, tool_settings
from catalog.services.changes import COMMAND_LINE
from catalog.services.tools import mark_facts_changed, store_definitions
from tests.rows import make_policy, make_server, make_tool

pytestmark = pytest.mark.django_db


def default() -> Policy:
    return Policy.objects.get(slug="default")


def stored(policy: Policy) -> list[tuple[str, str, str]]:
    return [(tool.name, tool.outcome, tool.reason) for tool in read_decided(policy).tools]


def computed(policy: Policy) -> list[tuple[str, str, str]]:
    facts = [known.facts for known in read_facts(Tool.objects.listed())]
    decided = decide(facts, read_policy(policy))
    return [(each.name, str(each.outcome), str(each.reason)) for each in decided.decisions]


def assert_follows(policy: Policy) -> None:
    """The stored list is what deciding everything anew would give, and so are its sums."""
    policy.refresh_from_db()
    assert stored(policy) == computed(policy)
    row, rows = DecidedList.objects.get(policy=policy), Decision.objects.filter(policy=policy)
    assert row.tools == rows.count()
    assert row.deferred == rows.filter(outcome="defer").count()
    assert row.all_chars == sum(rows.values_list("chars", flat=True))
    assert row.deferred_chars == sum(rows.filter(outcome="defer").values_list("chars", flat=True))
    assert row.chars == sum(rows.exclude(tool__server__kind="builtin").values_list("chars", flat=True))


class TestFollow:
    def test_new_tools_are_decided(self) -> None:
        make_tool(server=make_server(name="a", defer_loading=False), name="x")
        make_tool(server=make_server(name="b"), name="y")
        decisions.bring_up_to_date()
        assert stored(default()) == [
            ("mcp__a__x", "load", "server_load"),
            ("mcp__b__y", "defer", "mode_always"),
        ]

    def test_version_grows_only_when_a_decision_changes(self) -> None:
        tool = make_tool()
        decisions.bring_up_to_date()
        before = read_decided(default()).version
        tool_settings.change_tool(tool=tool, actor=COMMAND_LINE, keywords=["other words"])
        decisions.bring_up_to_date()
        assert read_decided(default()).version == before
        tool_settings.change_tool(tool=tool, actor=COMMAND_LINE, loading=Loading.ALWAYS)
        decisions.bring_up_to_date()
        assert read_decided(default()).version == before + 1

    def test_threshold_that_flips_decides_every_tool(self) -> None:
        policy = make_policy(mode="auto", threshold_unit="tools", threshold=3)
        server = make_server()
        for _ in range(2):
            make_tool(server=server)
        decisions.bring_up_to_date()
        assert {reason for _, _, reason in stored(policy)} == {"under_threshold"}
        make_tool(server=server)
        decisions.bring_up_to_date()
        assert {reason for _, _, reason in stored(policy)} == {"over_threshold"}
        assert_follows(policy)

    def test_edits_at_random_end_where_deciding_anew_would(self) -> None:
        """The steps are checked against the whole, edit by edit."""
        choose = random.Random(7)
        made = [make_server(name=f"s{number}") for number in range(4)]
        made.append(make_server(name="own", kind="builtin"))
        for server in made * 4:
            make_tool(server=server, description="word " * choose.randrange(40))
        watched = [
            default(),
            make_policy(mode="auto", threshold_unit="chars", threshold=1500),
            make_policy(mode="auto", threshold_unit="tools", threshold=18),
            make_policy(
                mode="auto", visible=["s1/*", "s2/*", "own/*"], threshold_unit="tokens", threshold=150
            ),
            make_policy(never_defer=["*_1*"], always_defer=["s0/*"], defer_builtins=True),
        ]
        for _ in range(60):
            _edit_something(choose)
            decisions.bring_up_to_date()
            for policy in watched:
                assert_follows(policy)


def _edit_something(choose: random.Random) -> None:
    tool = choose.choice(list(Tool.objects.all()))
    match choose.randrange(6):
        case 0:
            loading = choose.choice(list(Loading))
            tool_settings.change_tool(tool=tool, actor=COMMAND_LINE, loading=loading)
        case 1:
            tool_settings.change_tool(tool=tool, actor=COMMAND_LINE, hidden=not tool.hidden)
        case 2:
            wanted = choose.choice([True, False, None])
            servers.set_defer_loading(server=tool.server, defer_loading=wanted, actor=COMMAND_LINE)
        case 3:
            make_tool(server=tool.server, description="new " * choose.randrange(60))
        case 4:
            policy = choose.choice(list(Policy.objects.all()))
            changed = {"threshold": choose.randrange(1, 2500)}
            policies.change_policy(policy=policy, changed=changed, actor=COMMAND_LINE)
        case _:
            Server.objects.filter(pk=tool.server_id).update(enabled=not tool.server.enabled)
            mark_facts_changed(Tool.objects.filter(server=tool.server_id))


class TestCost:
    def test_one_changed_tool_costs_the_same_in_any_catalog(self) -> None:
        server = make_server()
        costs = [_queries_of_one_change(server, size) for size in (20, 400)]
        assert costs[0] == costs[1]
        assert costs[0].count("INSERT") == 1

    def test_behind_until_the_decisions_follow(self) -> None:
        decisions.bring_up_to_date()
        assert selector.count_behind() == 0
        make_tool()
        assert selector.count_behind() == 1
        decisions.bring_up_to_date()
        assert selector.count_behind() == 0
        make_policy()
        assert selector.count_behind() == 1


def _queries_of_one_change(server: Server, size: int) -> list[str]:
    """The first word of each query of the step after one tool's change."""
    listing = [Definition(name=f"tool_{number}") for number in range(size)]
    store_definitions(server=server, definitions=listing, now=timezone.now())
    decisions.bring_up_to_date()
    tool = Tool.objects.filter(loading=Loading.INHERIT)[0]
    tool_settings.change_tool(tool=tool, actor=COMMAND_LINE, loading=Loading.ALWAYS)
    with CaptureQueriesContext(connection) as queries:
        decisions.bring_up_to_date()
    return [query["sql"].split()[0] for query in queries]


class TestRead:
    def test_reader_who_is_overtaken_reads_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        make_tool(name="x")
        decisions.bring_up_to_date()
        read_rows, calls = selector._read_rows, []

        def overtaken(policy: Policy) -> tuple[selector.DecidedTool, ...]:
            rows = read_rows(policy)
            calls.append(len(rows))
            if len(calls) == 1:
                make_tool(name="y")
                decisions.bring_up_to_date()
            return rows

        monkeypatch.setattr(selector, "_read_rows", overtaken)
        assert len(read_decided(default()).tools) == 2
        assert calls == [1, 2]
