"""Who calls, and what the key gets: read together, once for each request."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from django.db import connection
from django.utils import timezone

from catalog.access import key_uses, rates
from catalog.access.keys import is_own_key
from catalog.domain.choices import Exposure
from catalog.domain.errors import InvalidInput
from catalog.domain.keys import read_prefix
from catalog.domain.policy import Policy
from sessions.domain.gateway_names import NameStyle
from sessions.offers.gateway_offer import GatewayOffer, gateway_offer_of
from sessions.offers.versions import Versions

# Read before every answer, so read without the ORM's work.
_KEY_AND_VERSIONS = """
    SELECT k.id, k.name, k.digest, k.policy_id, k.rate_limit_per_minute,
           p.version, d.version, d.catalog_version, c.number
    FROM agent_sessions_apikey k
    JOIN catalog_policy p ON p.id = k.policy_id
    LEFT JOIN catalog_decidedlist d ON d.policy_id = p.id
    LEFT JOIN catalog_catalogversion c ON c.id = 1
    WHERE k.prefix = %s AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > %s)
"""


@dataclass(frozen=True, slots=True)
class View:
    """What the address asks for. `exposure` is the policy's own where it is None."""

    exposure: Exposure | None
    names: NameStyle


@dataclass(frozen=True, slots=True)
class Caller:
    """A key in force and what it gets. `user_agent` is how the program names itself on the wire."""

    key_id: int
    key_name: str
    policy_id: int
    offer: GatewayOffer
    versions: Versions
    catalog_version: int
    user_agent: str

    @property
    def policy(self) -> Policy:
        return self.offer.offer.policy


def read_view(query: str) -> View:
    """Raises InvalidInput, which names what is known, for another value."""
    given = parse_qs(query, keep_blank_values=True)
    exposure = _read_word(given, "expose", [word.value for word in Exposure])
    names = _read_word(given, "names", [word.value for word in NameStyle])
    return View(Exposure(exposure) if exposure else None, NameStyle(names) if names else NameStyle.QUALIFIED)


def _read_word(given: Mapping[str, list[str]], name: str, known: list[str]) -> str | None:
    words = given.get(name)
    if words is None:
        return None
    if len(words) != 1 or words[0] not in known:
        raise InvalidInput.at(name, f"must be one of {', '.join(known)}")
    return words[0]


def admit(text: str, view: View, environ: Mapping[str, Any]) -> Caller | None:
    """The caller with this key, if it is in force; counts the request and notes the use.

    `environ` has the request's names as WSGI has them. Raises TooManyRequests past the key's limit.
    """
    prefix = read_prefix(text)
    row = None if prefix is None else _read(prefix)
    if row is None:
        return None
    key_id, name, digest, policy_id, rate_limit, policy, decided, catalog, number = row
    if not is_own_key(text, key_id=key_id, digest=digest):
        return None
    rates.count_request(key_id=key_id, limit_per_minute=rate_limit)
    key_uses.enqueue(key_id, environ)
    versions = Versions(policy, decided or 0, catalog or 0)
    offer = gateway_offer_of(policy_id, exposure=view.exposure, names=view.names, versions=versions)
    client = key_uses.read_client(environ)
    return Caller(key_id, name, policy_id, offer, versions, number or 0, client)


def _read(prefix: str) -> tuple[Any, ...] | None:
    now = connection.ops.adapt_datetimefield_value(timezone.now())
    with connection.cursor() as cursor:
        cursor.execute(_KEY_AND_VERSIONS, [prefix, now])
        row: tuple[Any, ...] | None = cursor.fetchone()
    return row
