"""The version numbers an offer depends on, read before every answer and therefore without the ORM."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper

from catalog.domain.errors import NotFound

_VERSIONS = """
    SELECT p.version, d.version, d.catalog_version FROM catalog_policy p
    LEFT JOIN catalog_decidedlist d ON d.policy_id = p.id WHERE p.id = %s
"""
_CATALOG = "SELECT number FROM catalog_catalogversion WHERE id = 1"


class Versions(NamedTuple):
    """Zeros mean that nothing has been decided yet."""

    policy: int
    decided: int = 0
    catalog: int = 0


def read_versions(policy_id: int) -> Versions:
    row = read_row(_VERSIONS, [policy_id])
    if row is None:
        raise NotFound("There is no such policy.")
    return Versions(row[0], row[1] or 0, row[2] or 0)


def read_catalog_version() -> int:
    """The catalog's version, which the decisions follow within two seconds."""
    row = read_row(_CATALOG, [])
    return row[0] if row else 0


def read_row(
    query: str, values: Sequence[Any], database: BaseDatabaseWrapper | None = None
) -> tuple[Any, ...] | None:
    with (database or connection).cursor() as cursor:
        cursor.execute(query, values)
        row: tuple[Any, ...] | None = cursor.fetchone()
    return row
