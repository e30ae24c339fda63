"""A session with what it has loaded, in one read without the ORM's work.

Most sessions bring nothing along: those are read whole. When a tool's loading is changed all of them ask for
their lists anew, and they search all day.
"""

import json
import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from sessions.domain.loaded import STORED, Loaded, LoadedTools
from sessions.models import AgentSession
from sessions.offers.versions import Versions

_COLUMNS = (
    "key_id",
    "policy_id",
    "model",
    "turn",
    "context_window",
    "context_used",
    "context_was_over",
    "version",
)
_OWN = ", ".join(f"s.{column}" for column in _COLUMNS)
_LOADED = ", ".join(f"l.{column}" for column in STORED)
_IS_PLAIN = "s.visible IS NULL AND s.turn_visible IS NULL AND s.builtin_tools = '[]'"
_PLAIN = f"""
    SELECT {_OWN}, {_LOADED} FROM agent_sessions_agentsession s
    LEFT JOIN agent_sessions_loadedtool l ON l.session_id = s.id
    WHERE s.id = %s AND {_IS_PLAIN}
    ORDER BY l.position
"""  # noqa: S608  our own names
# One row with the loaded tools as JSON: a row for each would cost a change of the interpreter's lock each.
_AS_JSON = {
    "sqlite": "json_group_array(json_array(l.position, {columns}))",
    "postgresql": "json_agg(json_build_array(l.position, {columns}))::text",
}
_OF_KEY = {
    vendor: f"""
    SELECT k.id, k.digest, k.rate_limit_per_minute,
           p.version, d.version, d.catalog_version, c.number, {_IS_PLAIN},
           (SELECT {as_json.format(columns=_LOADED)}
            FROM agent_sessions_loadedtool l WHERE l.session_id = s.id), {_OWN}
    FROM agent_sessions_apikey k
    LEFT JOIN agent_sessions_agentsession s ON s.id = %s AND s.key_id = k.id AND s.expires_at > %s
    LEFT JOIN catalog_policy p ON p.id = s.policy_id
    LEFT JOIN catalog_decidedlist d ON d.policy_id = p.id
    LEFT JOIN catalog_catalogversion c ON c.id = 1
    WHERE k.prefix = %s AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > %s)
"""  # noqa: S608
    for vendor, as_json in _AS_JSON.items()
}

# What is known of a plain session, in the model's order. Any other field is read when it is asked for.
_FIELDS = (
    "id",
    "key_id",
    "policy_id",
    "model",
    "turn",
    "context_window",
    "context_used",
    "context_was_over",
    "visible",
    "turn_visible",
    "builtin_tools",
    "version",
)


class SessionReading(NamedTuple):
    """A session, what it has loaded, and the versions that its tools come from."""

    session: AgentSession
    loaded: LoadedTools
    versions: Versions
    catalog_version: int


class OwnSession(NamedTuple):
    """A key in force, and the session that it asks for: None where this key has no such session."""

    key_id: int
    digest: str
    rate_limit_per_minute: int | None
    reading: SessionReading | None


def read_plain(session_id: uuid.UUID) -> tuple[AgentSession, LoadedTools] | None:
    """One consistent read. None where the session is gone or has additions."""
    database = connections[DEFAULT_DB_ALIAS]
    rows = _read(database, _PLAIN, [_store_id(database, session_id)])
    return (_make_session(session_id, rows[0]), _collect_loaded(rows, len(_COLUMNS))) if rows else None


def find_own_session(prefix: str, session_id: uuid.UUID, *, now: datetime) -> OwnSession | None:
    """None when no key in force has this prefix; the caller still has to check the key itself.

    A session that brings something along costs one read more.
    """
    database = connections[DEFAULT_DB_ALIAS]
    moment = database.ops.adapt_datetimefield_value(now)
    stored_id = _store_id(database, session_id)
    rows = _read(database, _OF_KEY[database.vendor], [stored_id, moment, prefix, moment])
    if not rows:
        return None
    key_id, digest, rate, policy, decided, catalog, number, is_plain, tools, *own = rows[0]
    if policy is None:
        return OwnSession(key_id, digest, rate, None)
    session = _make_session(session_id, own) if is_plain else _read_whole(session_id)
    if session is None:  # deleted since
        return OwnSession(key_id, digest, rate, None)
    in_order = sorted(json.loads(tools or "[]"))  # by position, which is never twice
    loaded = tuple([Loaded(*tool[1:]) for tool in in_order])
    versions = Versions(policy, decided or 0, catalog or 0)
    return OwnSession(key_id, digest, rate, SessionReading(session, loaded, versions, number or 0))


def _read(database: BaseDatabaseWrapper, query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    with database.cursor() as cursor:
        cursor.execute(query, values)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def _store_id(database: BaseDatabaseWrapper, session_id: uuid.UUID) -> uuid.UUID | str:
    return session_id if database.features.has_native_uuid_field else session_id.hex


def _make_session(session_id: uuid.UUID, own: Sequence[Any]) -> AgentSession:
    key_id, policy_id, model, turn, window, used, was_over, version, *_ = own
    brought: tuple[Any, ...] = (None, None, [])
    # SQLite has numbers for yes and no.
    values = (session_id, key_id, policy_id, model, turn, window, used, bool(was_over), *brought, version)
    return AgentSession.from_db(DEFAULT_DB_ALIAS, _FIELDS, values)


def _read_whole(session_id: uuid.UUID) -> AgentSession | None:
    return AgentSession.objects.filter(pk=session_id).order_by().first()


def _collect_loaded(rows: Sequence[tuple[Any, ...]], start: int) -> LoadedTools:
    found = (row[start:] for row in rows)
    return tuple(Loaded(*one) for one in found if one[0] is not None)
