"""Nodes are restarted one by one after `migrate`: no migration may break the code of the version before."""

from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.db import migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.migration import Migration
from django.db.migrations.state import ModelState, ProjectState
from django.db.models import Q

from catalog.domain.choices import ThresholdUnit
from catalog.migration_operations import AddCheckOnline, AddIndexOnline
from catalog.models import Policy
from tests.toolsearch_site.rules.migration_rules import ONLINE, find_breaks
from tests.toolsearch_site.rules.test_upgrade import FIRST_VERSION

DELETES = "an old node cannot delete such a row once a new node wrote about it; it can after its restart"
WIDER = "takes the place of a constraint that allowed less, and allows all that it did"
NEW_COLUMNS = "is about columns of this migration alone, and their defaults keep it"
BEFORE_THE_RULE = "ran before this rule was made, and a migration that has run is left as it is"

# Accepted findings and why: what happens on a node that still runs old code.
ACCEPTED = {
    "agent_sessions.0004_add_events_and_activity: sessionevent.session"
    " points at agent_sessions.agentsession": DELETES,
    "catalog.0006_add_saved_queries: savedquery.policy points at catalog.policy": DELETES,
    "catalog.0006_add_saved_queries: savedrun.policy points at catalog.policy": DELETES,
    "catalog.0006_add_saved_queries: AddConstraint change change_subject_is_known": WIDER,
    "catalog.0006_add_saved_queries: AddConstraint job job_kind_is_known": WIDER,
    "catalog.0017_add_connection_tests: AddConstraint job job_kind_is_known": WIDER,
    "catalog.0022_allow_encoding_jobs: AddCheckOnline job job_kind_is_known": WIDER,
    "catalog.0007_add_approvals: AddConstraint tool tool_approval_is_known": NEW_COLUMNS,
    "catalog.0007_add_approvals: AddConstraint tool tool_approved_has_a_time": NEW_COLUMNS,
    "catalog.0007_add_approvals: RunPython stands beside other operations": BEFORE_THE_RULE,
    "catalog.0007_add_approvals: AddIndex tool tool_to_review"
    " builds an index while writers wait": BEFORE_THE_RULE,
    "catalog.0007_add_approvals: AddIndex tool tool_unmarked"
    " builds an index while writers wait": BEFORE_THE_RULE,
    "toolsearch_site.0003_add_dismissed_steps: dismissedstep.user points at auth.user": DELETES,
    "catalog.0008_add_change_seals: AddField change.seal_number"
    " builds an index while writers wait": BEFORE_THE_RULE,
    "catalog.0008_add_change_seals: AddIndex change change_unsealed"
    " builds an index while writers wait": BEFORE_THE_RULE,
    "catalog.0018_add_gateway_settings: serverfeatures.server points at catalog.server": DELETES,
    "catalog.0019_check_gateway_settings: AddCheckOnline policy policy_exposure_is_known": NEW_COLUMNS,
    "catalog.0019_check_gateway_settings: AddCheckOnline policy policy_record_calls_is_known": NEW_COLUMNS,
    "catalog.0019_check_gateway_settings: AddCheckOnline policy"
    " policy_call_timeout_seconds_is_in_range": NEW_COLUMNS,
    "catalog.0019_check_gateway_settings: AddCheckOnline policy"
    " policy_max_result_tokens_is_in_range": NEW_COLUMNS,
    "catalog.0020_add_oauth: oauthattempt.server points at catalog.server": DELETES,
    "catalog.0020_add_oauth: oauthattempt.user points at auth.user": DELETES,
    "catalog.0020_add_oauth: oauthclient.server points at catalog.server": DELETES,
    "catalog.0020_add_oauth: oauthgrant.server points at catalog.server": DELETES,
    "catalog.0024_check_meaning_floor: AddCheckOnline policy policy_meaning_floor_is_in_range": NEW_COLUMNS,
    "agent_sessions.0009_add_gateway: openlease.server points at catalog.server": DELETES,
    "agent_sessions.0009_add_gateway: upstreamstate.server points at catalog.server": DELETES,
}


def later_migrations(loader: MigrationLoader) -> list[Migration]:
    """Ours that the first version did not have, in the order in which they are applied."""
    first = [(app, name) for app, name in FIRST_VERSION if name is not None]
    known = {key for node in first for key in loader.graph.forwards_plan(node)}
    ours = {app for app, _ in FIRST_VERSION}
    leaves = [leaf for leaf in loader.graph.leaf_nodes() if leaf[0] in ours]
    plan = [key for leaf in leaves for key in loader.graph.forwards_plan(leaf)]
    return [loader.graph.nodes[key] for key in dict.fromkeys(plan) if key[0] in ours and key not in known]


def find_all() -> list[str]:
    loader = MigrationLoader(None)
    old = loader.project_state([(app, name) for app, name in FIRST_VERSION if name is not None])
    state = old.clone()
    return [line for one in later_migrations(loader) for line in find_breaks(one, state, old)]


def test_no_migration_breaks_the_version_before() -> None:
    assert sorted(set(find_all()) - ACCEPTED.keys()) == []


def test_what_is_borne_is_still_there() -> None:
    assert sorted(ACCEPTED.keys() - set(find_all())) == []


def test_there_are_migrations_to_look_at() -> None:
    names = {f"{one.app_label}.{one.name}" for one in later_migrations(MigrationLoader(None))}
    assert {"catalog.0007_add_approvals", "agent_sessions.0004_add_events_and_activity"} <= names


def test_borne_constraint_allows_what_it_allowed() -> None:
    """The two that took the place of narrower ones: every word of the first version is a word still."""
    loader = MigrationLoader(None)
    old = loader.project_state([(app, name) for app, name in FIRST_VERSION if name is not None])
    new = loader.project_state(loader.graph.leaf_nodes())
    for model, constraint in (("change", "change_subject_is_known"), ("job", "job_kind_is_known")):
        was, now = (_words_of(state.models["catalog", model], constraint) for state in (old, new))
        assert was
        assert was < now


def _words_of(model: ModelState, name: str) -> set[str]:
    [constraint] = [one for one in model.options["constraints"] if one.name == name]
    [(_, words)] = constraint.condition.children
    return set(words)


def judge(*operations: Any, atomic: bool | None = None) -> list[str]:
    """On a table `shop.Thing` that the old code knows."""
    old = ProjectState()
    fields: list[tuple[str, Any]] = [
        ("id", models.BigAutoField(primary_key=True)),
        ("name", models.CharField(max_length=20)),
        ("size", models.IntegerField(null=True)),
    ]
    old.add_model(ModelState("shop", "Thing", fields))
    is_atomic = not any(isinstance(one, ONLINE) for one in operations) if atomic is None else atomic
    migration = type("Next", (Migration,), {"operations": operations, "atomic": is_atomic})(
        "0002_next", "shop"
    )
    return [line.removeprefix("shop.0002_next: ") for line in find_breaks(migration, old.clone(), old)]


def add(field: Any) -> migrations.AddField:
    return migrations.AddField("thing", "colour", field)


def alter(name: str, field: Any) -> migrations.AlterField:
    return migrations.AlterField("thing", name, field)


def state_only(operation: Any) -> migrations.SeparateDatabaseAndState:
    return migrations.SeparateDatabaseAndState(state_operations=[operation])


KEY = ("id", models.BigAutoField(primary_key=True))


class TestRules:
    @pytest.mark.parametrize(
        "operation",
        [
            add(models.CharField(max_length=9, default="")),
            add(models.IntegerField(default=0)),
            alter("size", models.IntegerField(default=0)),
            alter("size", models.TextField(null=True)),
            alter("name", models.CharField(max_length=10)),
            alter("name", models.CharField(max_length=20, unique=True)),
            alter("name", models.CharField(max_length=20, db_column="title")),
            migrations.RemoveField("thing", "size"),
            migrations.RenameField("thing", "size", "length"),
            migrations.RenameModel("Thing", "Item"),
            migrations.DeleteModel("Thing"),
            migrations.AlterModelTable("thing", "things"),
            migrations.AlterUniqueTogether("thing", {("name", "size")}),
            migrations.AddConstraint(
                "thing", models.CheckConstraint(condition=Q(size__gt=0), name="size_is_positive")
            ),
            migrations.CreateModel("Part", [KEY, ("thing", models.ForeignKey("shop.Thing", models.CASCADE))]),
            migrations.AddIndex("thing", models.Index(fields=["size"], name="by_size")),
            AddCheckOnline("thing", models.CheckConstraint(condition=Q(size__gt=0), name="size_is_positive")),
            add(models.IntegerField(null=True, unique=True)),
            migrations.RunPython(migrations.RunPython.noop),
            migrations.RunSQL("DROP TABLE shop_thing"),
        ],
        ids=lambda operation: type(operation).__name__,
    )
    def test_finds_what_old_code_trips_over(self, operation: Any) -> None:
        assert len(judge(operation)) == 1

    @pytest.mark.parametrize(
        "operation",
        [
            add(models.IntegerField(null=True)),
            add(models.IntegerField(default=0, db_default=0)),
            alter("name", models.CharField(max_length=30, choices=[("a", "A")])),
            migrations.AlterModelOptions("thing", {"ordering": ["name"]}),
            migrations.CreateModel("Part", [KEY, ("name", models.CharField(max_length=9))]),
            migrations.RunPython(migrations.RunPython.noop, migrations.RunPython.noop),
        ],
        ids=lambda operation: type(operation).__name__,
    )
    def test_lets_additions_pass(self, operation: Any) -> None:
        assert judge(operation) == []

    def test_index_that_is_built_online_may_be_added(self) -> None:
        index = AddIndexOnline("thing", models.Index(fields=["size"], name="by_size"))
        assert judge(index) == []
        assert judge(index, atomic=True) == ["online operations in a migration that is atomic"]

    def test_filling_of_rows_stands_alone(self) -> None:
        fill = migrations.RunPython(migrations.RunPython.noop, migrations.RunPython.noop)
        assert judge(add(models.IntegerField(null=True)), fill) == [
            "RunPython stands beside other operations"
        ]

    def test_table_may_pass_to_another_model_in_the_state_alone(self) -> None:
        fields: list[tuple[str, Any]] = [
            KEY,
            ("name", models.CharField(max_length=20)),
            ("size", models.IntegerField(null=True)),
        ]
        take_over = migrations.CreateModel("Item", fields, {"db_table": "shop_thing"})
        leave = migrations.DeleteModel("Thing")
        assert judge(state_only(take_over), state_only(leave)) == []

    @pytest.mark.parametrize(
        "operation",
        [
            add(models.IntegerField(null=True)),
            alter("size", models.IntegerField(default=0)),
            migrations.AlterModelTable("thing", "things"),
            migrations.DeleteModel("Thing"),
            migrations.CreateModel("Item", [KEY], {"db_table": "shop_thing"}),
            migrations.AddIndex("thing", models.Index(fields=["size"], name="by_size")),
            migrations.AddConstraint(
                "thing", models.CheckConstraint(condition=Q(size__gt=0), name="size_is_positive")
            ),
        ],
        ids=lambda operation: type(operation).__name__,
    )
    def test_state_that_no_longer_tells_the_tables_is_found(self, operation: Any) -> None:
        assert judge(state_only(operation)) == [
            "SeparateDatabaseAndState changes the shape of a table in the state alone"
        ]

    def test_state_apart_from_the_database_is_found(self) -> None:
        both = migrations.SeparateDatabaseAndState([migrations.RunSQL("DROP TABLE shop_thing")], [])
        assert judge(both) == ["SeparateDatabaseAndState"]

    def test_table_of_this_upgrade_may_still_change(self) -> None:
        made = migrations.CreateModel("Part", [KEY, ("name", models.CharField(max_length=9))])
        assert judge(made, migrations.RemoveField("part", "name"), migrations.DeleteModel("Part")) == []


@pytest.mark.django_db
def test_policy_that_measures_by_the_window_keeps_its_number_for_nodes_of_before() -> None:
    migration = import_module("catalog.migrations.0011_unset_default_context_window")
    by_unit = {unit: Policy.objects.create(slug=unit, threshold_unit=unit) for unit in ThresholdUnit}
    Policy.objects.update(context_window=200_000, version=1)
    migration.unset(apps, None)
    kept = {unit for unit, row in by_unit.items() if Policy.objects.get(pk=row.pk).context_window is not None}
    assert kept == {"context_percent", "context_used"}
