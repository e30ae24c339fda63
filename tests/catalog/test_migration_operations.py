"""Indexes and checks are added to a table that is in use: on PostgreSQL without holding up its writers."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import IntegrityError, NotSupportedError, connection, connections, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.migration import Migration
from django.db.migrations.state import ModelState, ProjectState
from django.db.models import Q

from catalog.migration_operations import AddCheckOnline, AddIndexOnline

pytestmark = pytest.mark.django_db

INDEX = AddIndexOnline("thing", models.Index(fields=["word"], name="thing_by_word"))
TABLE = "online_thing"


def check(*words: str) -> AddCheckOnline:
    return AddCheckOnline("thing", models.CheckConstraint(condition=Q(word__in=words), name="word_is_known"))


def make_migration(*operations: Any, atomic: bool = False) -> Migration:
    made: Migration = type("Next", (Migration,), {"operations": operations, "atomic": atomic})(
        "0002", "online"
    )
    return made


def make_state() -> ProjectState:
    state = ProjectState()
    fields: list[tuple[str, Any]] = [
        ("id", models.BigAutoField(primary_key=True)),
        ("word", models.CharField(max_length=20)),
    ]
    state.add_model(ModelState("online", "Thing", fields))
    return state


@pytest.fixture
def open_connection(tmp_path: Path) -> Iterator[Callable[[], BaseDatabaseWrapper]]:
    """Connections outside of the test's own transaction; on SQLite to a file of its own."""
    opened: list[str] = []

    def make() -> BaseDatabaseWrapper:
        alias = f"online_{len(opened)}"
        opened.append(alias)
        made = connections[alias] = connection.copy(alias)
        made.settings_dict["OPTIONS"].pop("pool", None)
        if made.vendor == "sqlite":
            made.settings_dict["NAME"] = str(tmp_path / "online.sqlite3")
        return made

    yield make
    for alias in opened:
        connections[alias].close()
        del connections[alias]


@pytest.fixture
def database(open_connection: Callable[[], BaseDatabaseWrapper]) -> Iterator[BaseDatabaseWrapper]:
    """With a table of things, one of them."""
    made = open_connection()
    state = make_state()
    with made.schema_editor() as editor:
        editor.create_model(state.apps.get_model("online", "Thing"))
    execute(made, f"INSERT INTO {TABLE} (word) VALUES ('old')")
    yield made
    execute(made, f"DROP TABLE {TABLE}")


def execute(database: BaseDatabaseWrapper, statement: str) -> list[tuple[Any, ...]]:
    with database.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall() if cursor.description else []


def apply(database: BaseDatabaseWrapper, *operations: Any, state: ProjectState | None = None) -> ProjectState:
    with database.schema_editor(atomic=False) as editor:
        return make_migration(*operations).apply(state or make_state(), editor)


def unapply(database: BaseDatabaseWrapper, *operations: Any) -> None:
    with database.schema_editor(atomic=False) as editor:
        make_migration(*operations).unapply(make_state(), editor)


def constraints_of(database: BaseDatabaseWrapper) -> set[str]:
    with database.cursor() as cursor:
        return set(database.introspection.get_constraints(cursor, TABLE))


def add(database: BaseDatabaseWrapper, word: str) -> None:
    execute(database, f"INSERT INTO {TABLE} (word) VALUES ('{word}')")


def test_index_is_added_and_taken_away(database: BaseDatabaseWrapper) -> None:
    apply(database, INDEX)
    assert "thing_by_word" in constraints_of(database)
    unapply(database, INDEX)
    assert "thing_by_word" not in constraints_of(database)


def test_check_is_added_and_taken_away(database: BaseDatabaseWrapper) -> None:
    apply(database, check("old"))
    with pytest.raises(IntegrityError):
        add(database, "new")
    unapply(database, check("old"))
    add(database, "new")


def test_check_of_that_name_is_replaced(database: BaseDatabaseWrapper) -> None:
    state = apply(database, check("old"))
    apply(database, check("old", "new"), state=state)
    add(database, "new")
    with pytest.raises(IntegrityError):
        add(database, "other")


class TestOnPostgresql:
    """SQLite locks the whole file for every write, so there is nothing to see there."""

    __test__ = connection.vendor == "postgresql"

    def test_statements_block_nobody(self, database: BaseDatabaseWrapper) -> None:
        with database.schema_editor(collect_sql=True, atomic=False) as editor:
            make_migration(INDEX, check("old")).apply(make_state(), editor, collect_sql=True)
        statements = [line for line in editor.collected_sql if not line.startswith("--")]
        assert any(line.startswith("CREATE INDEX CONCURRENTLY") for line in statements)
        assert any(line.endswith("NOT VALID;") for line in statements)
        assert any("VALIDATE CONSTRAINT" in line for line in statements)

    def test_transaction_is_refused(self, database: BaseDatabaseWrapper) -> None:
        with (
            pytest.raises(NotSupportedError, match="atomic = False"),
            database.schema_editor(atomic=True) as editor,
        ):
            INDEX.database_forwards("online", editor, make_state(), make_state())

    def test_writer_is_not_blocked_while_an_index_is_built(
        self, database: BaseDatabaseWrapper, open_connection: Callable[[], BaseDatabaseWrapper]
    ) -> None:
        """The build waits for a transaction that began before it; who comes later does not wait for it."""
        earlier, later, builder = open_connection(), open_connection(), open_connection()
        builder.inc_thread_sharing()
        earlier.set_autocommit(False)
        add(earlier, "earlier")
        building = threading.Thread(target=build, args=(builder,))
        building.start()
        try:
            wait_for_build(later)
            execute(later, "SET lock_timeout = '5s'")
            add(later, "later")
            assert building.is_alive()
        finally:
            earlier.commit()
            earlier.set_autocommit(True)
            building.join(timeout=30)
        assert "thing_by_word" in constraints_of(database)


def build(database: BaseDatabaseWrapper) -> None:
    connections[database.alias] = database  # of this thread
    apply(database, INDEX)


def wait_for_build(database: BaseDatabaseWrapper) -> None:
    waiting = (
        "SELECT 1 FROM pg_stat_activity WHERE datname = current_database()"
        " AND query LIKE 'CREATE INDEX%' AND wait_event_type = 'Lock'"
    )
    for _ in range(200):
        if execute(database, waiting):
            return
        execute(database, "SELECT pg_sleep(0.05)")
    raise AssertionError("the index is not being built")
