"""Migration operations for tables in use: on PostgreSQL they do not block writers while nodes run.

They work on SQLite as well, where migrations run with everything stopped. A migration that uses them has
`atomic = False` and contains nothing else that changes data. Each can be run again after an interruption.
"""

import time
from collections.abc import Callable
from typing import Any

from django.db import NotSupportedError, OperationalError, models, transaction
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations import AddConstraint, AddIndex
from django.db.migrations.state import ProjectState

# Whoever waits for a table's lock holds up everybody who comes later: so it waits briefly, and tries again.
LOCK_TIMEOUT = "1s"
LOCK_ATTEMPTS = 30
PAUSE_SECONDS = 1.0

Editor = BaseDatabaseSchemaEditor


class AddIndexOnline(AddIndex):
    """Builds the index with CREATE INDEX CONCURRENTLY."""

    atomic = False

    def database_forwards(
        self, app_label: str, schema_editor: Editor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        if not _is_postgresql(schema_editor):
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        _refuse_transaction(self, schema_editor)
        model = to_state.apps.get_model(app_label, self.model_name)
        # A build that was interrupted leaves an index that is not valid.
        _drop_index(schema_editor, self.index.name)
        schema_editor.add_index(model, self.index, concurrently=True)  # type: ignore[call-arg]  # PostgreSQL's

    def database_backwards(
        self, app_label: str, schema_editor: Editor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        if not _is_postgresql(schema_editor):
            super().database_backwards(app_label, schema_editor, from_state, to_state)
            return
        _refuse_transaction(self, schema_editor)
        _drop_index(schema_editor, self.index.name)


class AddCheckOnline(AddConstraint):
    """Adds a check NOT VALID, which takes a moment, then validates it, which blocks nobody.

    A check of that name is replaced, as needed when a column of choices gets a new value.
    """

    atomic = False

    def __init__(self, model_name: str, constraint: models.CheckConstraint) -> None:
        super().__init__(model_name, constraint)

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        known = state.models[app_label, self.model_name_lower].options.get("constraints", [])
        if any(one.name == self.constraint.name for one in known):
            state.remove_constraint(app_label, self.model_name_lower, self.constraint.name)
        super().state_forwards(app_label, state)

    def database_forwards(
        self, app_label: str, schema_editor: Editor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        self._replace(app_label, schema_editor, from_state, to_state)

    def database_backwards(
        self, app_label: str, schema_editor: Editor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        self._replace(app_label, schema_editor, from_state, to_state)

    def _replace(
        self, app_label: str, schema_editor: Editor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        """Make the table's check of this name what `to_state` says, or drop it where it has none."""
        model = to_state.apps.get_model(app_label, self.model_name)
        old = _find_check(from_state.apps.get_model(app_label, self.model_name), self.constraint.name)
        new = _find_check(model, self.constraint.name)
        if not _is_postgresql(schema_editor):
            with transaction.atomic(schema_editor.connection.alias):
                if old:
                    schema_editor.remove_constraint(model, old)
                if new:
                    schema_editor.add_constraint(model, new)
            return
        _refuse_transaction(self, schema_editor)
        table, name = map(schema_editor.quote_name, (model._meta.db_table, self.constraint.name))
        drop = f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {name}"
        if new is None:
            _lock_briefly(schema_editor, [drop])
            return
        _lock_briefly(schema_editor, [drop, f"{new.create_sql(model, schema_editor)} NOT VALID"])
        schema_editor.execute(f"ALTER TABLE {table} VALIDATE CONSTRAINT {name}")


def _find_check(model: type[models.Model], name: str) -> models.BaseConstraint | None:
    return next((one for one in model._meta.constraints if one.name == name), None)


def _is_postgresql(schema_editor: Editor) -> bool:
    return schema_editor.connection.vendor == "postgresql"


def _refuse_transaction(operation: object, schema_editor: Editor) -> None:
    if schema_editor.connection.in_atomic_block:
        raise NotSupportedError(f"{type(operation).__name__} needs `atomic = False` on its migration")


def _drop_index(schema_editor: Editor, name: str) -> None:
    schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {schema_editor.quote_name(name)}")


def _lock_briefly(schema_editor: Editor, statements: list[str]) -> None:
    """Run statements that need an exclusive lock, in one transaction, with a short lock timeout
    and retries.
    """

    def run() -> None:
        with transaction.atomic(schema_editor.connection.alias):
            schema_editor.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
            for statement in statements:
                schema_editor.execute(statement, params=None)

    _try_again(run)


def _try_again(run: Callable[[], Any]) -> None:
    for _ in range(LOCK_ATTEMPTS - 1):
        try:
            run()
        except OperationalError:  # the lock was not to be had in time
            time.sleep(PAUSE_SECONDS)
        else:
            return
    run()
