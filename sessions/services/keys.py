"""API keys: made and shown once, revoked at once."""

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from catalog.access import Role
from catalog.callers import Caller
from catalog.domain.errors import InvalidInput
from catalog.models import Policy
from catalog.models.changes import Action, Subject
from catalog.services import changes
from sessions.domain import keys
from sessions.models import ApiKey, Scope
from sessions.reading import polls
from sessions.services import rates, records

DEFAULT_POLICY = "default"
MAX_NAME_CHARS = 100


@dataclass(frozen=True, slots=True, repr=False)
class NewKey:
    """`text` is the key itself: show it once, keep it nowhere."""

    key: ApiKey
    text: str


@transaction.atomic
def create_key(
    *,
    name: str,
    actor: changes.Actor,
    policy: Policy | None = None,
    scope: Scope = Scope.AGENT,
    expires_at: datetime | None = None,
    rate_limit_per_minute: int | None = None,
    max_sessions: int | None = None,
) -> NewKey:
    """Make a key bound to a policy, `default` unless another is given. No limit unless one is given."""
    changes.require(actor, Role.ADMIN)
    name = name.strip()
    if not 0 < len(name) <= MAX_NAME_CHARS:
        raise InvalidInput.at("name", f"must have 1 to {MAX_NAME_CHARS} characters")
    if expires_at is not None and expires_at <= timezone.now():
        raise InvalidInput.at("expires_at", "must be in the future")
    for field, limit in (("rate_limit_per_minute", rate_limit_per_minute), ("max_sessions", max_sessions)):
        if limit is not None and limit < 1:
            raise InvalidInput.at(field, "must be at least 1")
    made = keys.make_key()
    key = ApiKey.objects.create(
        name=name,
        prefix=made.prefix,
        digest=keys.digest_key(made.text, pepper=settings.SECRET_KEY),
        scope=scope,
        policy=policy or Policy.objects.get(slug=DEFAULT_POLICY),
        created_by=actor.user,
        expires_at=expires_at,
        rate_limit_per_minute=rate_limit_per_minute,
        max_sessions=max_sessions,
    )
    _record(key, actor, Action.CREATED, after=_describe(key))
    return NewKey(key=key, text=made.text)


def identify(text: str) -> Caller | None:
    """Who calls with this key, if it is in force; counts the request. The same time for any wrong secret.

    Raises TooManyRequests past the key's limit.
    """
    prefix = keys.read_prefix(text)
    key = polls.find_key(prefix, now=timezone.now()) if prefix is not None else None
    if key is None or not is_own_key(text, key_id=key.id, digest=key.digest):
        return None
    rates.count_request(key_id=key.id, limit_per_minute=key.rate_limit_per_minute)
    records.note_use(key_id=key.id)
    is_admin = key.scope == Scope.ADMIN
    actor = changes.Actor(label=f"key {key.name} ({prefix})", role=Role.ADMIN if is_admin else Role.NONE)
    return Caller(actor=actor, key_id=key.id, policy_id=key.policy_id, is_admin=is_admin)


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


@transaction.atomic
def revoke_key(*, key: ApiKey, actor: changes.Actor) -> None:
    """In force at once. Revoking twice changes nothing the second time."""
    changes.require(actor, Role.ADMIN)
    now = timezone.now()
    if ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=now):
        _record(key, actor, Action.CHANGED, after={"revoked_at": now.isoformat(timespec="seconds")})


def _describe(key: ApiKey) -> dict[str, object]:
    """The key as the change record keeps it: limits that were not set are left out."""
    limits: dict[str, object] = {
        "expires_at": key.expires_at.isoformat(timespec="seconds") if key.expires_at else None,
        "rate_limit_per_minute": key.rate_limit_per_minute,
        "max_sessions": key.max_sessions,
    }
    given = {name: limit for name, limit in limits.items() if limit is not None}
    return {"scope": str(key.scope), "policy": key.policy.slug, **given}


def _record(key: ApiKey, actor: changes.Actor, action: Action, *, after: dict[str, object]) -> None:
    changes.record(
        actor=actor, subject=Subject.KEY, name=f"{key.name} ({key.prefix})", action=action, after=after
    )
