"""Who calls the REST API, by the key that a request brings."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from django.http import HttpRequest

from catalog.access import key_uses, keys, rates
from catalog.access.actors import Actor
from catalog.access.roles import Role
from catalog.domain.errors import LengthRequired, NotAllowed, NotFound, TooLarge, ToolSearchError
from catalog.domain.limits import BODY_BYTES, CONFIG_BODY_BYTES
from catalog.models import Policy, Scope

BEARER = "bearer "
CONFIG_PATH = "/api/v1/config"


class NotAuthenticated(ToolSearchError):
    """The same message for a missing, unknown, expired or revoked key."""

    status: ClassVar[int] = 401
    title: ClassVar[str] = "Unauthorized"

    def __init__(self) -> None:
        super().__init__("Send a key that is in force: Authorization: Bearer <key>.")


@dataclass(frozen=True)
class Caller:
    """`policy_id` is the policy that the key is bound to; an admin's key may use any."""

    actor: Actor
    key_id: int
    policy_id: int
    is_admin: bool

    @cached_property
    def policy(self) -> Policy:
        return Policy.objects.get(pk=self.policy_id)

    def use_policy(self, slug: str | None) -> Policy:
        """The policy named, or the key's own. Raises NotFound for one that the key may not use."""
        if slug is None:
            return self.policy
        policy = Policy.objects.filter(slug=slug).first()
        if policy is None or not (self.is_admin or policy.pk == self.policy_id):
            raise NotFound(f"There is no policy named {slug}.")
        return policy


def identify(text: str, environ: Mapping[str, Any]) -> Caller | None:
    """Who calls with this key, if it is in force; counts the request and notes the use.

    Raises TooManyRequests past the key's limit.
    """
    key = keys.recognise(text)
    if key is None:
        return None
    rates.count_request(key_id=key.id, limit_per_minute=key.rate_limit_per_minute)
    key_uses.enqueue(key.id, environ)
    is_admin = key.scope == Scope.ADMIN
    actor = Actor(label=f"key {key.name} #{key.id}", role=Role.ADMIN if is_admin else Role.NONE)
    return Caller(actor=actor, key_id=key.id, policy_id=key.policy_id, is_admin=is_admin)


class KeyCheck:
    """Asks a request for its key before anything else of it is read."""

    openapi_security_schema: ClassVar[dict[str, str]] = {"type": "http", "scheme": "bearer"}

    def __init__(self, *, for_admins: bool = False) -> None:
        self._for_admins = for_admins

    def __call__(self, request: HttpRequest) -> Caller:
        caller = self._find_caller(request)
        refuse_unmeasured_body(request)
        refuse_large_body(request)
        return caller

    def _find_caller(self, request: HttpRequest) -> Caller:
        caller = identify(read_bearer(request), request.META)
        if caller is None:
            raise NotAuthenticated
        if self._for_admins and not caller.is_admin:
            raise NotAllowed("This needs an admin key.")
        return caller


ANY_KEY = KeyCheck()
ADMIN_KEY = KeyCheck(for_admins=True)


def read_bearer(request: HttpRequest) -> str:
    return bearer_of(request.META)


def bearer_of(environ: Mapping[str, Any]) -> str:
    header = str(environ.get("HTTP_AUTHORIZATION", ""))
    return header[len(BEARER) :].strip() if header[: len(BEARER)].lower() == BEARER else ""


def has_unmeasured_body(request: HttpRequest) -> bool:
    """Whether the body is chunked and has no length: Django would treat it as empty."""
    return "HTTP_TRANSFER_ENCODING" in request.META and not request.META.get("CONTENT_LENGTH")


def refuse_unmeasured_body(request: HttpRequest) -> None:
    if has_unmeasured_body(request):
        raise LengthRequired("Send the body with a Content-Length; one that comes in chunks is not read.")


def largest_body_bytes(path: str) -> int:
    return CONFIG_BODY_BYTES if path == CONFIG_PATH else BODY_BYTES


def refuse_large_body(request: HttpRequest) -> None:
    length, most = str(request.META.get("CONTENT_LENGTH") or "0"), largest_body_bytes(request.path_info)
    if length.isdigit() and int(length) > most:
        raise TooLarge(f"A request's body has at most {most // 2**20} MiB.")


def caller_of(request: HttpRequest) -> Caller:
    """The caller that the check found."""
    caller = getattr(request, "auth", None)
    assert isinstance(caller, Caller)
    return caller
