"""The whole texts of results that were cut, sealed, each for its key to read on for some minutes."""

import secrets
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from catalog.domain.limits import KEPT_RESULT_BYTES, KEPT_RESULT_SECONDS, KEPT_RESULTS_OF_A_KEY
from catalog.models import ApiKey
from catalog.sealing import SealBroken, Sealer
from sessions.models import KeptResult
from sessions.models.gateway import MAX_HANDLE_CHARS

HANDLE_BYTES = 18  # 24 characters
BATCH_ROWS = 100


def keep_result(*, key_id: int, text: str) -> str | None:
    """Its handle; None where the key is gone. What is past `KEPT_RESULT_BYTES` is lost."""
    handle = secrets.token_urlsafe(HANDLE_BYTES)
    sealed = _sealer().seal({"text": _cut(text)}, context=_context(key_id, handle))
    now = timezone.now()
    with transaction.atomic():
        # Whoever keeps a result of this key waits here, or two would count without each other's.
        if not ApiKey.objects.select_for_update(no_key=True).filter(pk=key_id).exists():
            return None
        KeptResult.objects.create(
            handle=handle,
            key_id=key_id,
            sealed=sealed,
            created_at=now,
            expires_at=now + timedelta(seconds=KEPT_RESULT_SECONDS),
        )
        _trim(key_id)
    return handle


def read_kept(*, key_id: int, handle: str) -> str | None:
    """None where there is none of this key, or none any more, or none that can be read."""
    if len(handle) > MAX_HANDLE_CHARS or not handle.isascii() or not handle.isprintable():
        return None
    kept = KeptResult.objects.filter(pk=handle, key=key_id, expires_at__gt=timezone.now())
    sealed = kept.values_list("sealed", flat=True).first()
    if sealed is None:
        return None
    try:
        return str(_sealer().unseal(sealed, context=_context(key_id, handle))["text"])
    except SealBroken:
        return None


def forget_expired(*, now: datetime) -> int:
    """Delete in batches, so that no write lasts long."""
    expired, gone = KeptResult.objects.filter(expires_at__lte=now), 0
    while handles := list(expired.values_list("pk", flat=True)[:BATCH_ROWS]):
        expired.filter(pk__in=handles).delete()
        gone += len(handles)
    return gone


def _trim(key_id: int) -> None:
    kept = KeptResult.objects.filter(key=key_id).order_by("-created_at", "-pk")
    surplus = list(kept.values_list("pk", flat=True)[KEPT_RESULTS_OF_A_KEY:])
    if surplus:
        KeptResult.objects.filter(pk__in=surplus).delete()


def _cut(text: str) -> str:
    """To so many bytes of UTF-8, between two characters."""
    encoded = text.encode(errors="replace")
    return encoded[:KEPT_RESULT_BYTES].decode(errors="ignore")


def _context(key_id: int, handle: str) -> str:
    return f"kept result {handle} of key {key_id}"


def _sealer() -> Sealer:
    return Sealer(settings.ENCRYPTION_KEYS)
