"""API keys for pages."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.db.models import Count, F, QuerySet

from catalog.console.paging import Page, cut_page
from catalog.domain.errors import NotFound
from catalog.models import ApiKey


class KeyState(StrEnum):
    """Derived from the row, never stored."""

    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class KeyRow:
    key: ApiKey
    state: KeyState
    sessions: int


def keys_for_table(*, now: datetime, page: str | int = 1) -> Page[KeyRow]:
    """Keys that are not revoked first, by name; then the revoked, the latest first.

    `agent_sessions` is the relation by which the agents' app refers to a key.
    """
    keys: QuerySet[Any] = ApiKey.objects.annotate(session_count=Count("agent_sessions"))
    found = cut_page(
        keys.select_related("policy").order_by(F("revoked_at").desc(nulls_first=True), "name", "pk"), page
    )
    return found.with_rows([KeyRow(key, state_of(key, now=now), key.session_count) for key in found.rows])


def find_key(key_id: int) -> ApiKey:
    key = ApiKey.objects.filter(pk=key_id).first()
    if key is None:
        raise NotFound("There is no such key.")
    return key


def state_of(key: ApiKey, *, now: datetime) -> KeyState:
    if key.revoked_at is not None:
        return KeyState.REVOKED
    if key.expires_at is not None and key.expires_at <= now:
        return KeyState.EXPIRED
    return KeyState.ACTIVE
