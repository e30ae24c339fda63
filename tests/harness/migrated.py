"""The tables of a test run's SQLite databases: made once, and copied by each of its workers."""

import sqlite3
from contextlib import closing
from typing import Any

from django.db import connection

from tests.harness.prepared import open_database
from tests.harness.workers import WORKERS

_kept: list[sqlite3.Connection] = []


def copy_tables_when_created() -> None:
    """Have Django's test database begin as a copy, so that `migrate` finds nothing to do.

    One worker alone migrates sooner than it could make the copy's original.
    """
    if connection.vendor != "sqlite" or WORKERS == 1:
        return
    creation: Any = connection.creation
    create = creation._create_test_db

    def create_filled(*arguments: Any, **options: Any) -> str:
        name: str = create(*arguments, **options)
        filled = sqlite3.connect(name, uri=True)
        with closing(open_database()) as source:
            source.backup(filled)
        _kept.append(filled)  # a database in memory lives as long as somebody is connected
        return name

    creation._create_test_db = create_filled
