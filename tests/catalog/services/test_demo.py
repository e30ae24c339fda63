"""The demo catalog: full, valid, loaded once; it gives way to the first tools of one's own, and can go."""

from decimal import Decimal
from typing import Any

import pytest

from catalog.access.actors import COMMAND_LINE, SYSTEM
from catalog.domain import dialects
from catalog.domain.choices import Transport
from catalog.domain.connection import ServerListing
from catalog.models import Change, ModelSupport, Policy, SavedQuery, Server, Tool
from catalog.models.changes import Action
from catalog.models.jobs import JobKind
from catalog.selectors import saved_queries as saved_selectors
from catalog.selectors.demo import DemoState, read_demo
from catalog.selectors.totals import read_totals
from catalog.services import config, demo, derived_state, jobs, refresh, saved_runs, servers, snapshots
from catalog.services.saved_queries import delete_query, save_query
from catalog.services.undo import can_undo, undo_change
from tests.harness.rows import make_server, make_tool

pytestmark = pytest.mark.django_db

DEFINITION = {"name": "use", "description": "Uses it.", "inputSchema": {"type": "object"}}


def test_gives_models_prices_that_are_marked_as_examples() -> None:
    ModelSupport.objects.filter(name_pattern="claude-opus-4*").update(input_price=7)
    demo.load_demo()
    own = ModelSupport.objects.get(name_pattern="claude-opus-4*")
    assert (own.input_price, own.cached_input_price, own.prices_are_examples) == (Decimal(7), None, False)
    examples = ModelSupport.objects.filter(prices_are_examples=True)
    assert examples
    assert all(row.input_price and row.cached_input_price for row in examples)


def import_own(name: str = "own", *definitions: dict[str, Any]) -> None:
    given = list(definitions or (DEFINITION,))
    snapshots.import_snapshots(definitions_by_server={name: given}, actor=COMMAND_LINE)


def refresh_server(server: Server, *definitions: dict[str, Any]) -> None:
    def answer(*_: Any, **__: Any) -> ServerListing:
        return ServerListing(definitions)

    def run(job: Any) -> None:
        refresh.run_refresh(job, list_tools=answer)

    job = refresh.request_refresh(server=server)
    jobs.run_job(job_id=job.pk, holder="test", handlers={JobKind.REFRESH_SERVER: run})


def disabling() -> Change:
    return Change.objects.get(name__endswith="demo servers", action=Action.CHANGED)


class TestLoading:
    def test_fills_a_new_instance(self) -> None:
        assert demo.load_demo()
        assert Server.objects.count() >= 10
        assert Tool.objects.count() >= 150
        assert sum(Tool.objects.values_list("chars", flat=True)) / 4 > 40_000
        assert Server.objects.get(transport="stdio").name == "workshop"
        assert list(Tool.objects.filter(mark_count__gt=0).values_list("qualified_name", flat=True)) == []

    def test_all_of_it_is_marked(self) -> None:
        demo.load_demo()
        assert not Server.objects.filter(demo=False).exists()
        assert SavedQuery.objects.exists()
        assert not SavedQuery.objects.filter(demo=False).exists()

    def test_second_time_does_nothing(self) -> None:
        demo.load_demo()
        before = Change.objects.count()
        assert not demo.load_demo()
        assert Change.objects.count() == before

    def test_catalog_that_was_emptied_stays_empty(self) -> None:
        demo.load_demo()
        Server.objects.all().delete()
        assert not demo.load_demo()
        assert not Server.objects.exists()

    def test_instance_with_servers_is_left_alone(self) -> None:
        make_server()
        assert not demo.load_demo()
        assert Server.objects.count() == 1


class TestGivingWay:
    def test_first_tools_of_ones_own_disable_the_demo_in_one_change(self) -> None:
        demo.load_demo()
        import_own()
        assert not Server.objects.filter(demo=True, enabled=True).exists()
        assert read_totals().tools == 1
        change = disabling()
        assert change.actor == SYSTEM.label
        assert can_undo(change)

    def test_a_refresh_is_as_good_as_a_file(self) -> None:
        demo.load_demo()
        own = make_server(transport=Transport.HTTP, url="https://mcp.example.com/")
        refresh_server(own)
        assert Server.objects.filter(demo=True, enabled=True).exists(), "an empty list is no tool"
        refresh_server(own, DEFINITION)
        assert not Server.objects.filter(demo=True, enabled=True).exists()
        disabling()

    def test_tools_of_the_demo_itself_disable_nothing(self) -> None:
        demo.load_demo()
        refresh_server(Server.objects.get(name="workshop"), DEFINITION)
        assert not Server.objects.filter(demo=True, enabled=False).exists()

    def test_undo_brings_it_back_and_it_stays(self) -> None:
        demo.load_demo()
        import_own()
        undo_change(change=disabling(), actor=COMMAND_LINE)
        assert not Server.objects.filter(enabled=False).exists()
        import_own("second")
        import_own("own", DEFINITION, {**DEFINITION, "name": "other"})
        assert not Server.objects.filter(enabled=False).exists()
        again = Change.objects.filter(name__endswith="demo servers").latest("pk")
        undo_change(change=again, actor=COMMAND_LINE)
        assert not Server.objects.filter(demo=True, enabled=True).exists()

    def test_undo_leaves_what_was_changed_since(self) -> None:
        demo.load_demo()
        import_own()
        servers.set_enabled(server=Server.objects.get(name="github"), enabled=True, actor=COMMAND_LINE)
        restored = undo_change(change=disabling(), actor=COMMAND_LINE)
        assert restored == f"{Server.objects.filter(demo=True).count() - 1} demo servers"

    def test_it_is_never_enabled_by_itself(self) -> None:
        demo.load_demo()
        import_own()
        servers.delete_server(server=Server.objects.get(name="own"), actor=COMMAND_LINE)
        assert not demo.load_demo()
        refresh_server(Server.objects.get(name="workshop"), DEFINITION)
        assert read_demo() == DemoState(servers=12, enabled=0, own=0)

    def test_an_instance_that_has_both_keeps_both(self) -> None:
        demo.load_demo()
        make_tool()
        import_own()
        assert not Server.objects.filter(enabled=False).exists()


class TestReplacing:
    @pytest.mark.parametrize("name", ["github", "workshop"])
    def test_import_of_the_same_name_adds_a_server_of_ones_own(self, name: str) -> None:
        demo.load_demo()
        Server.objects.filter(name=name).update(defer_loading=True, enabled=False)
        parsed = dialects.parse_config({"mcpServers": {name: {"url": "https://mcp.example.com/"}}})
        plan = config.import_config(config=parsed, policy_slug="default", actor=COMMAND_LINE, dry_run=True)
        assert plan.added == (name,)
        config.import_config(config=parsed, policy_slug="default", actor=COMMAND_LINE)
        server = Server.objects.get(name=name)
        assert (server.demo, server.enabled, server.defer_loading) == (False, True, None)
        assert not server.tools.exists()
        again = config.import_config(config=parsed, policy_slug="default", actor=COMMAND_LINE)
        assert again.unchanged == (name,)

    def test_snapshot_of_the_same_name_takes_its_place(self) -> None:
        demo.load_demo()
        import_own("github")
        github = Server.objects.get(name="github")
        assert not github.demo
        assert list(github.tools.values_list("name", flat=True)) == ["use"]
        assert not Server.objects.filter(demo=True, enabled=True).exists()

    def test_export_marks_it_and_its_import_changes_nothing(self) -> None:
        demo.load_demo()
        exported = config.export_config(
            dialect=dialects.Dialect.PIZZAPI, policy_slug="default", actor=COMMAND_LINE
        ).document
        assert exported["mcpServers"]["workshop"]["demo"] is True  # type: ignore[index]
        plan = config.import_config(
            config=dialects.parse_config(exported), policy_slug="default", actor=COMMAND_LINE
        )
        assert plan.unchanged == ("workshop",)
        assert Server.objects.get(name="workshop").demo


class TestSavedQueries:
    def test_rest_while_the_demo_is_disabled(self) -> None:
        demo.load_demo()
        derived_state.bring_up_to_date()
        policy = Policy.objects.get(slug="default")
        run = saved_runs.run_policy(policy)
        assert run is not None
        assert run.queries == SavedQuery.objects.count()
        import_own()
        derived_state.bring_up_to_date()
        assert not saved_selectors.stale_policies().exists()
        assert saved_runs.run_policy(policy) is None
        assert saved_selectors.count_saved().queries == 0
        resting = saved_selectors.read_set(policy)
        assert resting.run is None, "a former run tells nothing of it"
        rows = resting.rows
        assert len(rows) == resting.resting == SavedQuery.objects.count()
        assert all(row.is_resting and row.passed is None for row in rows)
        save_query(policy=policy, query="use it", expected=["mcp__own__use"], actor=COMMAND_LINE)
        own_run = saved_runs.run_policy(policy)
        assert own_run is not None
        assert (own_run.queries, own_run.passed) == (1, 1)
        assert saved_selectors.read_set(policy).failing == 0
        undo_change(change=disabling(), actor=COMMAND_LINE)
        assert saved_selectors.stale_policies().exists()

    def test_one_that_is_changed_is_ones_own(self) -> None:
        demo.load_demo()
        saved = SavedQuery.objects.order_by("pk")[0]
        other = Tool.objects.exclude(qualified_name__in=saved.expected)[0].qualified_name
        save_query(policy=saved.policy, query=saved.query, expected=[other], actor=COMMAND_LINE)
        saved.refresh_from_db()
        assert not saved.demo

    def test_one_that_was_deleted_comes_back_as_the_demos(self) -> None:
        demo.load_demo()
        saved = SavedQuery.objects.order_by("pk")[0]
        change = delete_query(saved=saved, actor=COMMAND_LINE)
        undo_change(change=change, actor=COMMAND_LINE)
        assert SavedQuery.objects.get(query=saved.query).demo


class TestRemoving:
    def test_servers_tools_and_queries_go_and_ones_own_stay(self) -> None:
        demo.load_demo()
        make_tool(server=make_server(name="own"), name="use")
        policy = Policy.objects.get(slug="default")
        save_query(policy=policy, query="use it", expected=["mcp__own__use"], actor=COMMAND_LINE)
        queries = SavedQuery.objects.filter(demo=True).count()
        removed = demo.remove_demo(actor=COMMAND_LINE)
        assert removed is not None
        assert (removed.servers, removed.queries) == (12, queries)
        assert list(Server.objects.values_list("name", flat=True)) == ["own"]
        assert list(Tool.objects.values_list("name", flat=True)) == ["use"]
        assert list(SavedQuery.objects.values_list("query", flat=True)) == ["use it"]
        change = Change.objects.get(action=Action.DELETED)
        assert change.name == "12 demo servers"
        assert not can_undo(change)
        assert demo.remove_demo(actor=COMMAND_LINE) is None

    def test_it_is_not_loaded_again(self) -> None:
        demo.load_demo()
        demo.remove_demo(actor=COMMAND_LINE)
        assert not demo.load_demo()

    def test_counts_are_said_in_words(self) -> None:
        assert str(demo.Removed(12, 1, 8)) == "12 servers, 1 tool, 8 saved queries"
