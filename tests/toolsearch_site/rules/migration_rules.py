"""Rules for migrations while nodes of the previous version still run."""

from collections.abc import Iterator
from typing import Any

from django.db import connection, models
from django.db.migrations import operations
from django.db.migrations.migration import Migration
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

from catalog.migration_operations import AddCheckOnline, AddIndexOnline

HARMLESS = (
    operations.RemoveIndex,
    operations.RenameIndex,
    operations.RemoveConstraint,
    operations.AlterModelOptions,
    operations.AlterModelManagers,
)

ONLINE = (AddIndexOnline, AddCheckOnline)


def find_breaks(migration: Migration, state: ProjectState, old: ProjectState) -> Iterator[str]:
    """What code of the state `old` would trip over, a line for each. Moves `state` past the migration."""
    app = migration.app_label
    for what in _judge_together(migration):
        yield f"{app}.{migration.name}: {what}"
    for operation in migration.operations:
        before = state.clone()
        operation.state_forwards(app, state)
        found = (
            _judge_state_alone(operation, before, state)
            if isinstance(operation, operations.SeparateDatabaseAndState)
            else _judge(app, operation, before, state, old)
        )
        for what in found:
            yield f"{app}.{migration.name}: {what}"


def _judge_together(migration: Migration) -> Iterator[str]:
    """What may not stand in one migration: filled rows stay locked until the end of its transaction."""
    moves_data = [one for one in migration.operations if isinstance(one, operations.RunPython)]
    if moves_data and len(moves_data) < len(migration.operations):
        yield "RunPython stands beside other operations"
    if migration.atomic and any(isinstance(one, ONLINE) for one in migration.operations):
        yield "online operations in a migration that is atomic"


def _judge(
    app: str, operation: Operation, before: ProjectState, after: ProjectState, old: ProjectState
) -> Iterator[str]:
    model = _model_of(operation)
    if isinstance(operation, operations.CreateModel):
        for name, field in operation.fields:
            yield from _judge_reference(model, name, field, old)
    elif isinstance(operation, operations.AddField):
        yield from _judge_reference(model, operation.name, operation.field, old)
        if (app, model) in old.models:
            yield from _judge_new_column(model, operation)
    elif isinstance(operation, operations.AlterField) and (app, model) in old.models:
        yield from _judge_changed_column(app, model, operation, before, after)
    elif type(operation) is operations.AddIndex and (app, model) in old.models:
        yield f"AddIndex {model} {operation.index.name} builds an index while writers wait"
    elif not _is_harmless(operation) and (not model or (app, model) in old.models):
        constraint = getattr(getattr(operation, "constraint", None), "name", "")
        yield f"{type(operation).__name__} {model} {constraint}".strip()


def _judge_state_alone(
    operation: operations.SeparateDatabaseAndState, before: ProjectState, after: ProjectState
) -> Iterator[str]:
    if operation.database_operations:
        yield "SeparateDatabaseAndState"
    elif _shapes(before) != _shapes(after):
        yield "SeparateDatabaseAndState changes the shape of a table in the state alone"


def _shapes(state: ProjectState) -> set[tuple[Any, ...]]:
    """Every table as it is stored: its columns, what they point at, its constraints and indexes. Two models
    of one table are one shape if they agree, so that a table may pass from one model to another.
    """
    return {
        (
            model._meta.db_table,
            frozenset(_describe_column(field) for field in model._meta.concrete_fields),
            frozenset(repr(constraint) for constraint in model._meta.constraints),
            frozenset(repr(index.deconstruct()) for index in model._meta.indexes),
        )
        for model in state.apps.get_models(include_auto_created=True)
    }


def _describe_column(field: Any) -> tuple[Any, ...]:
    target = field.remote_field.model._meta.db_table if field.remote_field else None
    return (*_stored(field), field.null, field.unique, field.db_index, repr(field.db_default), target)


def _is_harmless(operation: Operation) -> bool:
    if isinstance(operation, operations.AddIndex):
        return True  # of a new table, or online
    can_be_undone = isinstance(operation, operations.RunPython) and operation.reversible
    return can_be_undone or isinstance(operation, HARMLESS)


def _model_of(operation: Operation) -> str:
    """The table that it is about, small; empty where it does not say."""
    if isinstance(operation, operations.RenameModel):
        return operation.old_name_lower
    return str(getattr(operation, "model_name", "") or getattr(operation, "name", "") or "").lower()


def _judge_reference(model: str, name: str, field: Any, old: ProjectState) -> Iterator[str]:
    """Cascades are the code's: old code that deletes a row does not know the rows that now point at it."""
    app, _, target = str(getattr(field.remote_field, "model", "")).lower().partition(".")
    if (app, target) in old.models:
        yield f"{model}.{name} points at {app}.{target}"


def _judge_new_column(model: str, operation: operations.AddField) -> Iterator[str]:
    """A default of the code's own is unknown to the old code, which leaves the column out."""
    field: Any = operation.field
    if not (field.null or field.has_db_default() or field.many_to_many):
        yield f"AddField {model}.{operation.name} has neither null nor a default in the database"
    if field.unique or field.db_index:
        yield f"AddField {model}.{operation.name} builds an index while writers wait"


def _judge_changed_column(
    app: str, model: str, operation: operations.AlterField, before: ProjectState, after: ProjectState
) -> Iterator[str]:
    was, now = (state.apps.get_model(app, model)._meta.get_field(operation.name) for state in (before, after))
    if was.null and not now.null:
        yield f"AlterField {model}.{operation.name} takes null away"
    if now.unique and not was.unique:
        yield f"AlterField {model}.{operation.name} becomes unique"
    if _stored(was) != _stored(now) and not _grows(was, now):
        yield f"AlterField {model}.{operation.name} is stored otherwise"


def _stored(field: Any) -> tuple[str | None, str | None]:
    return field.column, field.db_type(connection)


def _grows(was: Any, now: Any) -> bool:
    return (
        isinstance(was, models.CharField)
        and type(was) is type(now)
        and was.column == now.column
        and (now.max_length or 0) >= (was.max_length or 0)
    )
