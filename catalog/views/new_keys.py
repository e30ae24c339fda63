"""Carries a new key's text over the redirect that follows its creation, for one view.

It is sealed into the person's sign-in, bound to the key and the person, taken out by the request that shows
it, and worth nothing a few minutes later. So a reload makes no second key, and no table holds a key's text.
"""

from datetime import timedelta

from django.conf import settings
from django.http import HttpRequest
from django.utils import timezone

from catalog.sealing import SealBroken, Sealer
from catalog.services.keys import NewKey

SESSION_ENTRY = "new_key"
SHOWN_WITHIN = timedelta(minutes=5)


def keep_new_key(request: HttpRequest, new_key: NewKey) -> None:
    """A key that was kept before and never shown is dropped."""
    until = timezone.now() + SHOWN_WITHIN
    sealed = _sealer().seal(
        {"text": new_key.text, "until": until.timestamp()}, context=_context(request, new_key.key.pk)
    )
    request.session[SESSION_ENTRY] = sealed


def take_new_key(request: HttpRequest, key_id: int) -> str:
    """The text of the key that was just made, once. Empty at any other time, and for another key."""
    sealed = request.session.pop(SESSION_ENTRY, "")
    try:
        opened = _sealer().unseal(sealed, context=_context(request, key_id)) if sealed else {}
    except SealBroken:
        return ""
    is_fresh = timezone.now().timestamp() < opened.get("until", 0)
    return str(opened["text"]) if is_fresh else ""


def _sealer() -> Sealer:
    return Sealer(settings.ENCRYPTION_KEYS)


def _context(request: HttpRequest, key_id: int) -> str:
    return f"new key:{key_id}:{request.user.pk}"
