"""Looks into the embedded database before Django opens it."""

import sqlite3
from contextlib import closing
from pathlib import Path

_SEALED = (
    "SELECT EXISTS(SELECT 1 FROM catalog_server WHERE sealed <> '')",
    "SELECT EXISTS(SELECT 1 FROM catalog_lastseal WHERE number > 0)",
)


def holds_sealed_rows(path: Path) -> bool:
    """Whether something in it needs the encryption key. False where there is no such file or table; a file
    that cannot be read counts as one that does, for a new key would never open it.
    """
    if not path.exists():
        return False
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=1.0)) as database:
        return any(_asks(database, question) for question in _SEALED)


def _asks(database: sqlite3.Connection, question: str) -> bool:
    try:
        return bool(database.execute(question).fetchone()[0])
    except sqlite3.DatabaseError as error:
        return "no such table" not in str(error)
