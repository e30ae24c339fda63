"""Reads the embedded SQLite file before Django opens it."""

import sqlite3
from contextlib import closing
from pathlib import Path

_SEALED = (
    "SELECT EXISTS(SELECT 1 FROM catalog_server WHERE sealed <> '')",
    "SELECT EXISTS(SELECT 1 FROM catalog_lastseal WHERE number > 0)",
)
_API_KEYS = ("SELECT EXISTS(SELECT 1 FROM agent_sessions_apikey WHERE revoked_at IS NULL)",)
_SIGN_INS = ("SELECT EXISTS(SELECT 1 FROM django_session)",)


def holds_sealed_rows(path: Path) -> bool:
    """Whether something in it needs the encryption key."""
    return _holds(path, _SEALED)


def holds_api_keys(path: Path) -> bool:
    """Whether something in it needs the secret key: agents' keys are stored as hashes under it."""
    return _holds(path, _API_KEYS)


def holds_sign_ins(path: Path) -> bool:
    """Whether somebody is signed in, and has to sign in again under another secret key."""
    return _holds(path, _SIGN_INS)


def _holds(path: Path, questions: tuple[str, ...]) -> bool:
    """False where there is no such file or table; a file that cannot be read counts as one that does, for a
    new key would never open it.
    """
    if not path.exists():
        return False
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=1.0)) as database:
        return any(_asks(database, question) for question in questions)


def _asks(database: sqlite3.Connection, question: str) -> bool:
    try:
        return bool(database.execute(question).fetchone()[0])
    except sqlite3.DatabaseError as error:
        return "no such table" not in str(error)
