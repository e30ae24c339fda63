"""Creates, identifies and revokes API keys."""

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from catalog.access import actors
from catalog.access.roles import Role
from catalog.domain import keys
from catalog.domain.errors import InvalidInput
from catalog.domain.policy import DEFAULT_SLUG
from catalog.models import ApiKey, Policy, Scope
from catalog.models.changes import Action, Subject
from catalog.services import changes

MAX_NAME_CHARS = 100


@dataclass(frozen=True, slots=True, repr=False)
class NewKey:
    """`text` is the key itself: shown once and stored nowhere."""

    key: ApiKey
    text: str


@transaction.atomic
def create_key(
    *,
    name: str,
    actor: actors.Actor,
    policy: Policy | None = None,
    scope: Scope = Scope.AGENT,
    expires_at: datetime | None = None,
    rate_limit_per_minute: int | None = None,
    max_sessions: int | None = None,
) -> NewKey:
    """Create a key bound to a policy, `default` unless another is given; without a rate limit unless one is
    given.
    """
    actors.require(actor, Role.ADMIN)
    name = name.strip()
    if not 0 < len(name) <= MAX_NAME_CHARS:
        raise InvalidInput.at("name", f"must have 1 to {MAX_NAME_CHARS} characters")
    if expires_at is not None and expires_at <= timezone.now():
        raise InvalidInput.at("expires_at", "must be in the future")
    for field, limit in (("rate_limit_per_minute", rate_limit_per_minute), ("max_sessions", max_sessions)):
        if limit is not None and limit < 1:
            raise InvalidInput.at(field, "must be at least 1")
    made = keys.make_api_key()
    key = ApiKey.objects.create(
        name=name,
        prefix=made.prefix,
        digest=keys.digest_key(made.text, pepper=settings.SECRET_KEY),
        scope=scope,
        policy=policy or Policy.objects.get(slug=DEFAULT_SLUG),
        created_by=actor.user,
        expires_at=expires_at,
        rate_limit_per_minute=rate_limit_per_minute,
        max_sessions=max_sessions,
    )
    _record(key, actor, Action.CREATED, after=_describe(key))
    return NewKey(key=key, text=made.text)


@transaction.atomic
def revoke_key(*, key: ApiKey, actor: actors.Actor) -> None:
    """Takes effect at once. Revoking again changes nothing."""
    actors.require(actor, Role.ADMIN)
    now = timezone.now()
    if ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=now):
        _record(key, actor, Action.CHANGED, after={"revoked_at": now.isoformat(timespec="seconds")})


def _describe(key: ApiKey) -> dict[str, object]:
    """The key's fields for the change record; unset limits are left out."""
    limits: dict[str, object] = {
        "expires_at": key.expires_at.isoformat(timespec="seconds") if key.expires_at else None,
        "rate_limit_per_minute": key.rate_limit_per_minute,
        "max_sessions": key.max_sessions,
    }
    given = {name: limit for name, limit in limits.items() if limit is not None}
    return {"scope": str(key.scope), "policy": key.policy.slug, **given}


def _record(key: ApiKey, actor: actors.Actor, action: Action, *, after: dict[str, object]) -> None:
    changes.record_change(
        actor=actor, subject=Subject.KEY, name=f"{key.name} ({key.prefix})", action=action, after=after
    )
