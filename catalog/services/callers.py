"""Who calls the REST API: what a key may do, without the key itself."""

from dataclasses import dataclass

from catalog.domain.errors import NotAllowed, NotFound
from catalog.models import Policy
from catalog.services.changes import Actor


@dataclass(frozen=True, slots=True)
class Caller:
    """`policy` is the one the key is bound to; an admin's key may use any."""

    actor: Actor
    key_id: int
    policy: Policy
    is_admin: bool


def require_admin(caller: Caller) -> None:
    """Raises NotAllowed for an agent's key."""
    if not caller.is_admin:
        raise NotAllowed("this needs an admin key")


def policy_for(caller: Caller, slug: str | None) -> Policy:
    """The policy named, or the key's own. Raises NotFound for one that the key may not use."""
    if slug is None or slug == caller.policy.slug:
        return caller.policy
    policy = Policy.objects.filter(slug=slug).first() if caller.is_admin else None
    if policy is None:
        raise NotFound(f"There is no policy named {slug}.")
    return policy
