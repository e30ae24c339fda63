"""Prepares rows before a transaction begins, so that the transaction only writes them.

Converting values for the database (JSON above all) costs more than storing them, and Django's bulk updates
cost far more again. SQLite has one writer: everybody waits for whatever is done while it is held.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import connection, models

RowValues = tuple[Any, ...]


class Columns:
    """Some columns of a model, in a given order. Statements hold names from the model and no value."""

    def __init__(self, model: type[models.Model], names: Iterable[str]) -> None:
        self.names = tuple(names)
        self._model = model
        self._fields = [_concrete_field(model, name) for name in self.names]

    def prepare(self, values: Iterable[object]) -> RowValues:
        """One row's values in column order, converted for the database."""
        return tuple(
            field.get_db_prep_save(value, connection)
            for field, value in zip(self._fields, values, strict=True)
        )

    def insert(self, rows: Sequence[RowValues]) -> None:
        """Insert rows. Other columns get the model's defaults."""
        named = {field.attname for field in self._fields}
        others = [
            field
            for field in self._model._meta.concrete_fields
            if field.attname not in named and not field.primary_key
        ]
        defaults = tuple(field.get_db_prep_save(field.get_default(), connection) for field in others)
        columns = [*self._fields, *others]
        marks = ", ".join(["%s"] * len(columns))
        statement = f"INSERT INTO {self._table} ({', '.join(map(_quote, columns))}) VALUES ({marks})"  # noqa: S608
        self._run(statement, [(*row, *defaults) for row in rows])

    def update(self, rows: Iterable[tuple[int, RowValues]]) -> None:
        """Update rows, given by primary key."""
        key = self._model._meta.pk
        assert key is not None
        assignments = ", ".join(f"{_quote(field)} = %s" for field in self._fields)
        statement = f"UPDATE {self._table} SET {assignments} WHERE {_quote(key)} = %s"  # noqa: S608
        self._run(statement, [(*values, primary_key) for primary_key, values in rows])

    @property
    def _table(self) -> str:
        return connection.ops.quote_name(self._model._meta.db_table)

    def _run(self, statement: str, rows: list[RowValues]) -> None:
        if not rows:
            return
        with connection.cursor() as cursor:
            cursor.executemany(statement, rows)


def _concrete_field(model: type[models.Model], name: str) -> "models.Field[Any, Any]":
    field = model._meta.get_field(name)
    assert isinstance(field, models.Field)
    return field


def _quote(field: "models.Field[Any, Any]") -> str:
    assert field.column
    return connection.ops.quote_name(field.column)
