"""An instance of an earlier version migrates in place: every row keeps its values, and all goes on."""

from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps as present_apps
from django.apps.registry import Apps
from django.contrib.auth.models import User
from django.db import IntegrityError, connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.test import Client
from django.utils import timezone

from catalog.domain.definitions import Definition
from catalog.models import ApiKey, Policy, SavedQuery, Tool
from catalog.selectors import search
from catalog.services import derived_state
from sessions.models import AgentSession

# What the first version had; every later one must be reached from here.
FIRST_VERSION: list[tuple[str, str | None]] = [
    ("catalog", "0005_fill_model_support"),
    ("agent_sessions", "0003_add_order_of_use"),
    ("toolsearch_site", None),
]
# The last version in which keys were a model of the agents' app.
BEFORE_KEYS_MOVED: list[tuple[str, str | None]] = [
    ("catalog", "0011_unset_default_context_window"),
    ("agent_sessions", "0006_index_own_bytes"),
]
KEYS_MOVED: list[tuple[str, str | None]] = [
    ("catalog", "0013_move_key_content_type"),
    ("agent_sessions", "0007_leave_keys_to_catalog"),
]
NOTHING: list[tuple[str, str | None]] = [
    ("catalog", None),
    ("agent_sessions", None),
    ("toolsearch_site", None),
]
OURS = ("catalog", "agent_sessions")
DESCRIBING = {
    "sqlite": ["SELECT type, name, sql FROM sqlite_master WHERE tbl_name IN (%s, %s) ORDER BY name"],
    "postgresql": [
        "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint"
        " WHERE conrelid IN (%s::regclass, %s::regclass) ORDER BY conname",
        "SELECT indexname, indexdef FROM pg_indexes WHERE tablename IN (%s, %s) ORDER BY indexname",
        "SELECT table_name, column_name, data_type, is_nullable, column_default, identity_generation"
        " FROM information_schema.columns WHERE table_name IN (%s, %s) ORDER BY 1, ordinal_position",
        "SELECT pg_get_serial_sequence(%s, 'id'), %s::text",
    ],
}
DEFINITION = Definition(name="create_issue", title="Create", description="Open a new issue.")


def go_to(targets: list[tuple[str, str | None]]) -> Apps:
    executor = MigrationExecutor(connection)
    executor.migrate(targets)
    reached = [(app, name) for app, name in targets if name is not None]
    return MigrationExecutor(connection).loader.project_state(reached).apps


def go_to_the_present() -> None:
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())


def managers(apps: Apps, app: str) -> dict[str, Any]:
    return {model.__name__: model._base_manager for model in apps.get_app_config(app).get_models()}


def fill(apps: Apps) -> None:
    """A row in every table, by the models as they were."""
    now = timezone.now()
    catalog, agents = managers(apps, "catalog"), managers(apps, "agent_sessions")
    server = catalog["Server"].create(name="github", transport="stdio", command="npx", sealed="sealed-text")
    tool = catalog["Tool"].create(
        server=server,
        name=DEFINITION.name,
        qualified_name="mcp__github__create_issue",
        title=DEFINITION.title,
        description=DEFINITION.description,
        digest=DEFINITION.digest,
        chars=DEFINITION.size.chars,
        loading="defer",
        keywords=["ticket"],
        version=1,
        facts_version=1,
        first_seen_at=now,
        changed_at=now,
    )
    catalog["CatalogVersion"].filter(pk=1).update(number=1)
    catalog["ToolRevision"].create(
        tool=tool,
        number=1,
        digest=tool.digest,
        definition=DEFINITION.to_wire(),
        chars=tool.chars,
        seen_at=now,
    )
    catalog["ToolTag"].create(tool=tool, name="issues")
    policy = catalog["Policy"].create(slug="strict", never_defer=["a*"], quarantine="changed")
    catalog["PolicyVersion"].create(policy=policy, number=1, fields={"mode": "always"}, actor="ada")
    catalog["DecidedList"].create(policy=policy, version=3, catalog_version=1, policy_version=1, tools=1)
    catalog["Decision"].create(policy=policy, tool=tool, outcome="defer", reason="tool_defer", chars=9)
    catalog["Change"].create(actor="ada", subject="server", name="github", action="created", after={"a": 1})
    job = catalog["Job"].create(kind="refresh_server", subject=server.pk, run_after=now)
    catalog["RefreshRun"].create(
        server=server, job=job, started_at=now, finished_at=now, rejected=[{"name": "x", "why": "y"}]
    )
    catalog["Heartbeat"].create(part="worker", at=now)
    key = agents["ApiKey"].create(name="agent", prefix="abcdefgh", digest="0" * 64, policy=policy)
    session = agents["AgentSession"].create(
        key=key,
        policy=policy,
        external_id="x",
        visible=["*"],
        last_seen_at=now,
        expires_at=now + timedelta(days=1),
    )
    agents["LoadedTool"].create(
        session=session, name="mcp__github__create_issue", position=1, loaded_turn=0, used_turn=0
    )
    agents["SearchEvent"].create(
        session=session, at=now, turn=1, query="q", form="keywords", outcome="matched", hits=[], took_us=9
    )
    agents["Snapshot"].create(session=session, turn=1, search_tool_name="search_tools", was_active=True)


def read(apps: Apps, columns: dict[str, list[str]] | None = None) -> dict[str, list[dict[str, Any]]]:
    """Every row of our tables; of a later version, the columns that an earlier one had."""
    found = {}
    for label in OURS:
        for model in apps.get_app_config(label).get_models():
            name = model._meta.db_table  # which it keeps when another app takes the model over
            wanted = (
                [one.attname for one in model._meta.concrete_fields] if columns is None else columns.get(name)
            )
            if wanted is not None:
                found[name] = list(model._base_manager.order_by("pk").values(*wanted))
    return found


@pytest.mark.django_db(transaction=True, serialized_rollback=True)
@pytest.mark.slow
def test_rows_of_the_first_version_are_kept_and_served_and_its_code_goes_on() -> None:
    try:
        go_to(NOTHING)
        past = go_to(FIRST_VERSION)
        fill(past)
        before = read(past)
        assert [name for name, rows in before.items() if not rows] == []
        go_to_the_present()
        columns = {name: list(rows[0]) for name, rows in before.items()}
        after = read(present_apps, columns)
        assert after.keys() == before.keys()
        for row in before["catalog_policy"]:
            assert row["context_window"] == 200_000
            row["context_window"] = None  # means the same since 0011
        for name, rows in before.items():
            assert after[name] == rows, name
        _refuse_a_deletion_that_old_code_cannot_finish(past)
        _go_on_with_old_code(past)
        _use_it()
    finally:
        go_to_the_present()


@pytest.mark.django_db(transaction=True, serialized_rollback=True)
@pytest.mark.slow
def test_keys_move_to_the_catalog_and_their_table_stays_as_it_is() -> None:
    """There and back: rows, columns, constraints, indexes and the sequence are the same to the letter."""
    try:
        past = go_to(BEFORE_KEYS_MOVED)
        fill(past)
        rows, tables = read(past), describe_tables()
        moved = go_to(KEYS_MOVED)
        assert describe_tables() == tables
        after = read(moved)
        for name in ("agent_sessions_apikey", "agent_sessions_agentsession"):
            assert len(rows[name]) == 1
            assert after[name] == rows[name]
        go_to_the_present()
        session = AgentSession.objects.select_related("key").get()
        assert session.key == ApiKey.objects.get(prefix="abcdefgh")
        new = ApiKey.objects.create(name="new", prefix="ijklmnop", digest="1" * 64, policy=session.policy)
        assert new.pk > session.key.pk
        old_keys = managers(past, "agent_sessions")["ApiKey"]
        old_keys.create(name="old node's", prefix="qrstuvwx", digest="2" * 64, policy_id=session.policy_id)
        go_to(BEFORE_KEYS_MOVED)
        assert describe_tables() == tables
        assert old_keys.count() == 3
        old_keys.all().delete()
        assert not managers(past, "agent_sessions")["AgentSession"].exists()
    finally:
        go_to_the_present()


@pytest.mark.django_db(transaction=True, serialized_rollback=True)
@pytest.mark.slow
def test_permissions_on_keys_follow_them() -> None:
    """A backup names them in words, which an instance that was made later has to know."""
    try:
        past = go_to(BEFORE_KEYS_MOVED)
        types = past.get_model("contenttypes", "ContentType").objects
        types.filter(app_label="catalog", model="apikey").delete()
        old = types.get_or_create(app_label="agent_sessions", model="apikey")[0]
        go_to_the_present()
        assert list(types.filter(model="apikey").values_list("pk", "app_label")) == [(old.pk, "catalog")]
        go_to(BEFORE_KEYS_MOVED)
        assert list(types.filter(model="apikey").values_list("app_label", flat=True)) == ["agent_sessions"]
    finally:
        go_to_the_present()


def describe_tables() -> list[list[tuple[Any, ...]]]:
    """The database's own words for the tables of keys and sessions, and what hangs on them."""
    described = []
    with connection.cursor() as cursor:
        for query in DESCRIBING[connection.vendor]:
            cursor.execute(query, ["agent_sessions_apikey", "agent_sessions_agentsession"])
            described.append(cursor.fetchall())
    return described


def _refuse_a_deletion_that_old_code_cannot_finish(past: Apps) -> None:
    """What `test_migrations.py` bears: it fails, and nothing is lost."""
    policy = managers(past, "catalog")["Policy"].get(slug="strict")
    unknown_to_it = SavedQuery.objects.create(policy_id=policy.pk, query="an issue", expected=[])
    with pytest.raises(IntegrityError), transaction.atomic():
        policy.delete()
    assert Policy.objects.get(slug="strict").decided.tools == 1
    unknown_to_it.delete()


def _go_on_with_old_code(past: Apps) -> None:
    """A node that was not restarted yet deletes and writes in every table, by the models that it knows."""
    managers(past, "agent_sessions")["ApiKey"].all().delete()
    catalog = managers(past, "catalog")
    catalog["Policy"].filter(slug="strict").delete()
    for name in ("Server", "Job", "Heartbeat", "Change"):
        catalog[name].all().delete()
    fill(past)
    assert [name for name, rows in read(past).items() if not rows] == []


def _use_it() -> None:
    """What followed the catalog follows it again, and pages about the old rows open."""
    derived_state.bring_up_to_date()
    policy = Policy.objects.get(slug="strict")
    assert policy.decisions.get().reason == "tool_defer"
    found = search.search_policy(policy=policy, query="open an issue")
    assert [hit.qualified_name for hit in found.hits] == ["mcp__github__create_issue"]
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    tool = Tool.objects.get()
    for path in (
        "/",
        "/tools/",
        tool.get_absolute_url(),
        "/servers/github/",
        "/sessions/",
        "/policies/strict/",
    ):
        assert client.get(path).status_code == 200, path
