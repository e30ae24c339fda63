"""A session that brings nothing along, with what it has loaded: one read, without the ORM's work.

Such are most sessions, and when a tool's loading is changed all of them ask for their lists anew.
"""

import uuid

from django.db import DEFAULT_DB_ALIAS, connections

from sessions.domain.loaded import STORED, Loaded, LoadedTools
from sessions.models import AgentSession

_COLUMNS = ("policy_id", "version", "model", "context_window", "context_used", "context_was_over")
_PLAIN = f"""
    SELECT {", ".join(f"s.{column}" for column in _COLUMNS)}, {", ".join(f"l.{column}" for column in STORED)}
    FROM agent_sessions_agentsession s
    LEFT JOIN agent_sessions_loadedtool l ON l.session_id = s.id
    WHERE s.id = %s AND s.visible IS NULL AND s.turn_visible IS NULL AND s.builtin_tools = '[]'
    ORDER BY l.position
"""  # noqa: S608  our own names


def read_plain(session_id: uuid.UUID) -> tuple[AgentSession, LoadedTools] | None:
    """Both of one moment. None where the session is gone, or there is more to read of it."""
    database = connections[DEFAULT_DB_ALIAS]
    stored_id = session_id if database.features.has_native_uuid_field else session_id.hex
    with database.cursor() as cursor:
        cursor.execute(_PLAIN, [stored_id])
        rows = cursor.fetchall()
    if not rows:
        return None
    own = dict(zip(_COLUMNS, rows[0], strict=False))
    own["context_was_over"] = bool(own["context_was_over"])  # a number in SQLite
    found = (row[len(_COLUMNS) :] for row in rows)
    loaded = tuple(Loaded(*one) for one in found if one[0] is not None)
    return AgentSession(pk=session_id, **own), loaded
