"""Reads key, session and versions of a poll in one query, without the ORM."""

import uuid
from datetime import datetime
from typing import Any, NamedTuple

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from sessions.offers.versions import Versions, read_row

_OF_SESSION = """
    SELECT k.id, k.digest, k.rate_limit_per_minute,
           p.id, p.version, d.version, d.catalog_version, s.version, s.model
    FROM agent_sessions_apikey k
    LEFT JOIN agent_sessions_agentsession s ON s.id = %s AND s.expires_at > %s
    LEFT JOIN catalog_policy p ON p.id = s.policy_id AND s.key_id = k.id
    LEFT JOIN catalog_decidedlist d ON d.policy_id = p.id
    WHERE k.prefix = %s AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > %s)
"""
_OF_POLICY = """
    SELECT k.id, k.digest, k.rate_limit_per_minute,
           p.id, p.version, d.version, d.catalog_version, 0, ''
    FROM agent_sessions_apikey k
    LEFT JOIN catalog_policy p ON p.slug = %s AND (p.id = k.policy_id OR k.scope = 'admin')
    LEFT JOIN catalog_decidedlist d ON d.policy_id = p.id
    WHERE k.prefix = %s AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > %s)
"""


class Poll(NamedTuple):
    """A valid key and what it asks for. `policy_id` is None where that does not exist for this key."""

    key_id: int
    digest: str
    rate_limit_per_minute: int | None
    policy_id: int | None
    versions: Versions
    session_version: int
    model: str


def find_session_poll(prefix: str, session_id: uuid.UUID, *, now: datetime) -> Poll | None:
    """None when no valid key has this prefix; the caller must still check the key itself."""
    database = connections[DEFAULT_DB_ALIAS]  # looking it up costs, so once
    moment = database.ops.adapt_datetimefield_value(now)
    stored_id = session_id if database.features.has_native_uuid_field else session_id.hex
    return _find(database, _OF_SESSION, [stored_id, moment, prefix, moment])


def find_policy_poll(prefix: str, slug: str, *, now: datetime) -> Poll | None:
    database = connections[DEFAULT_DB_ALIAS]
    return _find(database, _OF_POLICY, [slug, prefix, database.ops.adapt_datetimefield_value(now)])


def _find(database: BaseDatabaseWrapper, query: str, values: list[Any]) -> Poll | None:
    row = read_row(query, values, database)
    if row is None:
        return None
    key_id, digest, rate, policy_id, policy, decided, catalog, session_version, model = row
    versions = Versions(policy or 0, decided or 0, catalog or 0)
    return Poll(key_id, digest, rate, policy_id, versions, session_version or 0, model or "")
