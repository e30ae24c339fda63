"""Every policy's decided list follows the catalog and the policy, by what a change touched."""

import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from catalog.access.actors import COMMAND_LINE
from catalog.domain import decide as decide_module
from catalog.domain.choices import Kind, Loading
from catalog.domain.decide import decide
from catalog.domain.definitions import Definition
from catalog.domain.facts import ToolFacts
from catalog.domain.rules import Situation
from catalog.models import DecidedList, Decision, Job, Policy, Server, Tool
from catalog.models.jobs import JobKind
from catalog.selectors import decisions as selector
from catalog.selectors import search
from catalog.selectors.facts import read_facts, read_policy
from catalog.selectors.tool_decisions import verdicts_of
from catalog.services import decisions, policies, retention, servers, tool_settings
from catalog.services.tools import mark_facts_changed, store_definitions
from tests.harness.rows import make_policy, make_server, make_tool

pytestmark = pytest.mark.django_db


def default() -> Policy:
    return Policy.objects.get(slug="default")


def stored(policy: Policy) -> list[tuple[str, str, str]]:
    tools = list(Tool.objects.order_by("qualified_name"))
    verdicts = verdicts_of(policy, tools)
    shown = [(tool.qualified_name, verdicts[tool.pk]) for tool in tools if tool.pk in verdicts]
    return [(name, str(verdict.outcome), str(verdict.reason)) for name, verdict in shown]


def version_of(policy: Policy) -> int:
    return DecidedList.objects.get(policy=policy).version


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
        before = version_of(default())
        tool_settings.change_tool(tool=tool, actor=COMMAND_LINE, keywords=["other words"])
        decisions.bring_up_to_date()
        assert version_of(default()) == before
        tool_settings.change_tool(tool=tool, actor=COMMAND_LINE, loading=Loading.ALWAYS)
        decisions.bring_up_to_date()
        assert version_of(default()) == before + 1

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

    @pytest.mark.slow
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

    @pytest.mark.parametrize(
        ("edit", "of_each_policy"),
        [({"keywords": ["other"]}, 0), ({"loading": Loading.ALWAYS}, 1), ({"hidden": True}, 1)],
    )
    def test_many_policies_follow_in_few_statements(self, edit: dict[str, Any], of_each_policy: int) -> None:
        """Of each policy no more than its list is written by itself."""
        tool = make_tool(server=make_server())
        policies_made = [make_policy() for _ in range(30)]
        decisions.bring_up_to_date()
        tool_settings.change_tool(tool=tool, actor=COMMAND_LINE, **edit)
        with CaptureQueriesContext(connection) as queries:
            decisions.bring_up_to_date()
        assert len(queries) <= 15 + of_each_policy * (len(policies_made) + 1)
        reads = [query["sql"] for query in queries if query["sql"].startswith("SELECT")]
        assert sum('FROM "catalog_tool"' in sql for sql in reads) == 2  # which were touched, and their facts
        for policy in policies_made:
            assert_follows(policy)

    def test_list_that_is_up_to_date_is_not_written(self) -> None:
        make_tool()
        decisions.bring_up_to_date()
        with CaptureQueriesContext(connection) as queries:
            decisions.bring_up_to_date()
        assert {query["sql"].split()[0] for query in queries} == {"SELECT"}

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
    return [query["sql"].removeprefix("1 times:").split()[0] for query in queries]


class TestWriting:
    @pytest.mark.django_db(transaction=True, serialized_rollback=True)
    def test_nothing_is_read_or_decided_while_the_writer_is_held(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        decide_one, decided = decide_module.decide_one, []

        def watch(facts: ToolFacts, situation: Situation) -> decide_module.Decision:
            assert not connection.in_atomic_block
            decided.append(facts.name)
            return decide_one(facts, situation)

        make_tool(name="x")
        monkeypatch.setattr(decide_module, "decide_one", watch)
        decisions.bring_up_to_date()
        assert decided

    def test_first_list_is_written_in_batches_and_is_in_force_at_the_end(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(decisions, "BATCH_NEW_ROWS", 2)
        server = make_server()
        for _ in range(5):
            make_tool(server=server)
        seen: list[tuple[int, int]] = []
        write_rows = decisions._write_rows

        def watch(rows: Sequence[decisions._Row]) -> None:
            write_rows(rows)
            seen.append((len(rows), DecidedList.objects.get(policy=default()).policy_version))

        monkeypatch.setattr(decisions, "_write_rows", watch)
        decisions.bring_up_to_date()
        assert seen == [(2, 0), (2, 0), (1, 0), (0, 0)]
        assert DecidedList.objects.get(policy=default()).policy_version == default().version
        assert_follows(default())

    def test_list_in_force_is_replaced_in_one_transaction(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Also where all of it is decided anew: readers see the old list until they see the new one."""
        server = make_server()
        for _ in range(5):
            make_tool(server=server)
        decisions.bring_up_to_date()
        monkeypatch.setattr(decisions, "BATCH_NEW_ROWS", 2)
        servers.set_kind(server=server, kind=Kind.BUILTIN, actor=COMMAND_LINE)
        written: list[int] = []
        write_rows = decisions._write_rows

        def watch(rows: Sequence[decisions._Row]) -> None:
            write_rows(rows)
            written.append(len(rows))

        monkeypatch.setattr(decisions, "_write_rows", watch)
        decisions.bring_up_to_date()
        assert written == [5]
        assert_follows(default())

    def test_search_finds_nothing_of_a_first_list_that_is_being_written(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(decisions, "BATCH_NEW_ROWS", 2)
        server = make_server()
        for _ in range(3):
            make_tool(server=server)
        policy, seen = default(), []
        write_rows = decisions._write_rows

        def watch(rows: Sequence[decisions._Row]) -> None:
            write_rows(rows)
            seen.append(set(search._remember_shown(policy).ids))

        monkeypatch.setattr(decisions, "_write_rows", watch)
        decisions.bring_up_to_date()
        assert seen == [set(), set(), set()]
        assert len(search._remember_shown(policy).ids) == 3

    def test_search_sees_the_old_list_until_all_is_decided_anew(self) -> None:
        tool = make_tool()
        decisions.bring_up_to_date()
        decisions.request_all_anew()
        assert set(search._remember_shown(default()).ids) == {tool.pk}

    @pytest.mark.parametrize("is_first", [True, False])
    def test_whoever_is_overtaken_decides_again(
        self, monkeypatch: pytest.MonkeyPatch, is_first: bool
    ) -> None:
        """Another worker decides, from newer facts, between the reading and the writing."""
        tool = make_tool(server=make_server())
        if not is_first:
            decisions.bring_up_to_date()
            tool_settings.change_tool(tool=tool, actor=COMMAND_LINE, loading=Loading.DEFER)
        make_step = decisions._make_step
        overtaking: list[decisions._Step] = []

        def be_overtaken(*args: Any, **kwargs: Any) -> decisions._Step:
            step = make_step(*args, **kwargs)
            if not overtaking:
                overtaking.append(step)
                tool_settings.change_tool(tool=tool, actor=COMMAND_LINE, loading=Loading.ALWAYS)
                decisions.bring_up_to_date()
            return step

        monkeypatch.setattr(decisions, "_make_step", be_overtaken)
        decisions.bring_up_to_date()
        assert stored(default()) == [(tool.qualified_name, "load", "tool_always")]
        assert_follows(default())


class TestDeletedServer:
    @pytest.fixture
    def github(self) -> Server:
        github, slack = make_server(name="github"), make_server(name="slack")
        for name in ("read", "write"):
            make_tool(server=github, name=name, description="x" * 100)
        make_tool(server=slack, name="send", loading=Loading.ALWAYS)
        for slug, unit, limit in (("few", "tools", 2), ("chars", "chars", 10), ("none", "tools", 50)):
            make_policy(slug=slug, mode="auto", threshold_unit=unit, threshold=limit)
        make_policy(slug="narrow", visible=["slack/*"])
        decisions.bring_up_to_date()
        return github

    def test_leaves_every_list_at_once_and_no_policy_is_decided_for_it(
        self, github: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = dict(DecidedList.objects.values_list("policy__slug", "version"))
        monkeypatch.setattr(decisions, "bring_up_to_date", _refuse)
        servers.delete_server(server=github, actor=COMMAND_LINE)
        for policy in Policy.objects.all():
            assert [name for name, _, _ in stored(policy)] == ["mcp__slack__send"]
        after = dict(DecidedList.objects.values_list("policy__slug", "version"))
        assert [slug for slug in before if after[slug] == before[slug]] == []
        assert Job.objects.filter(kind=JobKind.DECIDE, state="waiting").exists()

    def test_sums_are_those_of_deciding_all_anew_and_thresholds_follow(self, github: Server) -> None:
        fields = ("policy__slug", "tools", "chars", "all_chars", "deferred", "deferred_chars")
        servers.delete_server(server=github, actor=COMMAND_LINE)
        at_once = set(DecidedList.objects.values_list(*fields))
        assert DecidedList.objects.get(policy__slug="few").over
        decisions.bring_up_to_date()
        assert not DecidedList.objects.get(policy__slug="few").over
        for policy in Policy.objects.all():
            assert stored(policy) == computed(policy)
        decisions.request_all_anew()
        decisions.bring_up_to_date()
        assert set(DecidedList.objects.values_list(*fields)) == at_once

    @pytest.mark.parametrize("is_first", [True, False])
    def test_goes_while_all_of_a_list_is_being_decided(
        self, github: Server, monkeypatch: pytest.MonkeyPatch, is_first: bool
    ) -> None:
        """Rows are there whose sums are not: there is nothing to subtract from."""
        policy = make_policy(slug="new") if is_first else default()
        if not is_first:
            servers.set_kind(server=github, kind=Kind.BUILTIN, actor=COMMAND_LINE)
        write = decisions._write

        def be_overtaken(steps: Sequence[decisions._Step]) -> list[int]:
            monkeypatch.setattr(decisions, "_write", write)
            servers.delete_server(server=github, actor=COMMAND_LINE)
            shown = len(search._remember_shown(policy).ids)
            assert shown == (0 if is_first else 1)
            return write(steps)

        monkeypatch.setattr(decisions, "_write", be_overtaken)
        decisions.bring_up_to_date()
        assert [name for name, _, _ in stored(policy)] == ["mcp__slack__send"]
        for each in Policy.objects.all():
            assert_follows(each)

    @pytest.mark.parametrize("is_first", [True, False])
    def test_decision_that_was_planned_for_its_tool_is_not_written(
        self, github: Server, monkeypatch: pytest.MonkeyPatch, is_first: bool
    ) -> None:
        """No list has a tool of the server yet."""
        policy = make_policy(slug="new") if is_first else default()
        late = make_server(name="late")
        make_tool(server=late)
        make_step = decisions._make_step
        overtaking: list[decisions._Step] = []

        def be_overtaken(*args: Any, **kwargs: Any) -> decisions._Step:
            step = make_step(*args, **kwargs)
            if not overtaking and step.decided.policy_id == policy.pk:
                overtaking.append(step)
                servers.delete_server(server=late, actor=COMMAND_LINE)
            return step

        monkeypatch.setattr(decisions, "_make_step", be_overtaken)
        decisions.bring_up_to_date()
        connection.check_constraints()
        for each in Policy.objects.all():
            assert_follows(each)

    def test_decision_that_was_planned_for_a_pruned_tool_is_not_written(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        server, long_ago = make_server(), timezone.now() - timedelta(days=90)
        decisions.bring_up_to_date()
        store_definitions(server=server, definitions=[Definition(name="short")], now=long_ago)
        make_step = decisions._make_step
        overtaking: list[decisions._Step] = []

        def be_overtaken(*args: Any, **kwargs: Any) -> decisions._Step:
            step = make_step(*args, **kwargs)
            if not overtaking:
                overtaking.append(step)
                store_definitions(server=server, definitions=[], now=long_ago)
                retention.prune(now=timezone.now())
            return step

        monkeypatch.setattr(decisions, "_make_step", be_overtaken)
        decisions.bring_up_to_date()
        connection.check_constraints()
        decisions.bring_up_to_date()
        assert_follows(default())
        retention.prune(now=timezone.now())
        assert not Tool.objects.exists()


def _refuse() -> None:
    raise AssertionError("decided within the request")
