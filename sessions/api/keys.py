"""API keys by REST, for admins."""

from typing import Annotated

from django.http import HttpRequest
from django.utils import timezone
from ninja import Path, Router, Status

from catalog.callers import ADMIN_KEY, caller_of
from sessions.models import ApiKey, Scope
from sessions.schema_types import LARGEST_ID
from sessions.schemas import KeyIn, KeyListOut, KeyOut, NewKeyOut
from sessions.selectors import find_key, state_of
from sessions.services import keys

router = Router(tags=["keys"], auth=ADMIN_KEY)

Id = Annotated[int, Path(ge=1, le=LARGEST_ID)]


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
        policy=caller.use_policy(wanted.policy or keys.DEFAULT_POLICY),
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
