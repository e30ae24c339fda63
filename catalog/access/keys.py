"""Recognises API keys: finds the one in force that a text names, and checks the text against its hash."""

from datetime import datetime
from typing import NamedTuple

from django.conf import settings
from django.db import connection
from django.utils import timezone

from catalog.domain import keys
from catalog.models import ApiKey

# Read before every answer, so read without the ORM's work.
_IN_FORCE = """
    SELECT k.id, k.name, k.prefix, k.digest, k.scope, k.policy_id, k.rate_limit_per_minute
    FROM agent_sessions_apikey k
    WHERE k.prefix = %s AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > %s)
"""


class KeyInForce(NamedTuple):
    id: int
    name: str
    prefix: str
    digest: str
    scope: str
    policy_id: int
    rate_limit_per_minute: int | None


def recognise(text: str) -> KeyInForce | None:
    """The key in force that has this text. Takes the same time for any wrong secret."""
    prefix = keys.read_prefix(text)
    key = _find_in_force(prefix, now=timezone.now()) if prefix is not None else None
    if key is None or not is_own_key(text, key_id=key.id, digest=key.digest):
        return None
    return key


def is_own_key(text: str, *, key_id: int, digest: str) -> bool:
    """Whether the text is the key whose hash is stored. One from under a former `SECRET_KEY` is taken, and
    its hash made anew, so that the former one can be dropped once every key has been used.
    """
    if keys.is_same_key(text, digest, pepper=settings.SECRET_KEY):
        return True
    former = settings.SECRET_KEY_FALLBACKS
    if not any(keys.is_same_key(text, digest, pepper=pepper) for pepper in former):
        return False
    renewed = keys.digest_key(text, pepper=settings.SECRET_KEY)
    ApiKey.objects.filter(pk=key_id, digest=digest).update(digest=renewed)
    return True


def _find_in_force(prefix: str, *, now: datetime) -> KeyInForce | None:
    with connection.cursor() as cursor:
        cursor.execute(_IN_FORCE, [prefix, connection.ops.adapt_datetimefield_value(now)])
        row = cursor.fetchone()
    return None if row is None else KeyInForce(*row)
