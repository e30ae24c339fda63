"""API keys by REST, for admins."""

from datetime import datetime
from typing import Annotated, Any

from django.http import HttpRequest
from django.utils import timezone
from ninja import Field, Path, Router, Schema, Status
from pydantic import ConfigDict, StringConstraints

from catalog.access.callers import ADMIN_KEY, caller_of
from catalog.domain.limits import COUNT, ROW_ID
from catalog.domain.policy import DEFAULT_SLUG
from catalog.models import ApiKey, Scope
from catalog.request_bodies import BodyIn, Choice, Moment, ShortText, Text
from catalog.selectors.keys import KeyState, find_key, state_of
from catalog.services import keys

router = Router(tags=["keys"], auth=ADMIN_KEY)

Id = Annotated[int, Path(ge=1, le=ROW_ID)]

KEY_EXAMPLE: dict[str, Any] = {
    "id": 3,
    "name": "coding-agent",
    "prefix": "k3v9x2ab",
    "scope": "agent",
    "policy": "default",
    "state": "active",
    "rate_limit_per_minute": 600,
    "max_sessions": None,
    "created_at": "2026-01-05T09:00:00Z",
    "expires_at": None,
    "last_used_at": None,
}


class KeyIn(BodyIn):
    model_config = ConfigDict(json_schema_extra={"example": {"name": "coding-agent", "scope": "agent"}})

    answer_only = frozenset({"id", "prefix", "state", "created_at", "last_used_at"})

    name: Annotated[Text, StringConstraints(min_length=1, max_length=100)]
    scope: Choice[Scope] = Scope.AGENT
    policy: ShortText | None = None
    expires_at: Moment | None = None
    rate_limit_per_minute: Annotated[int, Field(ge=1, le=COUNT)] | None = None
    max_sessions: Annotated[int, Field(ge=1, le=COUNT)] | None = None


class KeyOut(Schema):
    model_config = ConfigDict(json_schema_extra={"example": KEY_EXAMPLE})

    id: int
    name: str
    prefix: str
    scope: Scope
    policy: str
    state: KeyState
    rate_limit_per_minute: int | None
    max_sessions: int | None
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None


class NewKeyOut(KeyOut):
    model_config = ConfigDict(json_schema_extra={"example": {**KEY_EXAMPLE, "key": "tk_k3v9x2ab_…"}})

    key: str = Field(description="The key itself: shown here once and kept nowhere.")


class KeyListOut(Schema):
    model_config = ConfigDict(json_schema_extra={"example": {"items": [KEY_EXAMPLE], "next": None}})

    items: list[KeyOut]
    next: str | None


@router.get("/keys", operation_id="list_keys", summary="All keys, without their texts", response=KeyListOut)
def list_keys(request: HttpRequest) -> KeyListOut:
    found = ApiKey.objects.select_related("policy").order_by("name", "pk")
    return KeyListOut(items=[_describe(key) for key in found], next=None)


@router.post("/keys", operation_id="create_key", summary="Make a key", response={201: NewKeyOut})
def create_key(request: HttpRequest, wanted: KeyIn) -> Status[NewKeyOut]:
    """`key` is shown here once and kept nowhere."""
    caller = caller_of(request)
    made = keys.create_key(
        name=wanted.name,
        actor=caller.actor,
        policy=caller.use_policy(wanted.policy or DEFAULT_SLUG),
        scope=wanted.scope,
        expires_at=wanted.expires_at,
        rate_limit_per_minute=wanted.rate_limit_per_minute,
        max_sessions=wanted.max_sessions,
    )
    return Status(201, NewKeyOut(**_describe(made.key).dict(), key=made.text))


@router.delete("/keys/{int:key_id}", operation_id="revoke_key", summary="Revoke a key", response={204: None})
def revoke_key(request: HttpRequest, key_id: Id) -> Status[None]:
    """In force at once; the key stays in the list."""
    keys.revoke_key(key=find_key(key_id), actor=caller_of(request).actor)
    return Status(204, None)


def _describe(key: ApiKey) -> KeyOut:
    return KeyOut(
        id=key.pk,
        name=key.name,
        prefix=key.prefix,
        scope=Scope(key.scope),
        policy=key.policy.slug,
        state=state_of(key, now=timezone.now()),
        rate_limit_per_minute=key.rate_limit_per_minute,
        max_sessions=key.max_sessions,
        created_at=key.created_at,
        expires_at=key.expires_at,
        last_used_at=key.last_used_at,
    )
