"""The rest of a result that was cut is its key's alone, sealed, and kept for some minutes."""

from datetime import timedelta

import pytest
from cryptography.fernet import Fernet
from django.conf import settings
from django.test import override_settings
from django.utils import timezone

from catalog.domain.limits import KEPT_RESULT_BYTES, KEPT_RESULTS_OF_A_KEY
from sessions.models import KeptResult
from sessions.services.kept_results import forget_expired, keep_result, read_kept
from tests.harness.rows import make_key

pytestmark = pytest.mark.django_db


def keep(key_id: int, text: str = "the rest") -> str:
    handle = keep_result(key_id=key_id, text=text)
    assert handle is not None
    return handle


def test_is_read_by_its_handle() -> None:
    key = make_key()
    handle = keep(key.pk, "Grüße\0 \N{GRINNING FACE}")
    assert len(handle) >= 22
    assert read_kept(key_id=key.pk, handle=handle) == "Grüße\0 \N{GRINNING FACE}"


def test_is_sealed() -> None:
    key = make_key()
    handle = keep(key.pk, "open sesame")
    assert "sesame" not in KeptResult.objects.get(pk=handle).sealed


def test_is_nobody_else_s() -> None:
    key, other = make_key(), make_key()
    handle = keep(key.pk)
    assert read_kept(key_id=other.pk, handle=handle) is None
    # Neither by a row that somebody with the database gave to another key.
    KeptResult.objects.filter(pk=handle).update(key=other)
    assert read_kept(key_id=other.pk, handle=handle) is None


@pytest.mark.parametrize("handle", ["", "a" * 24, "a" * 5_000, "a\0b", "ä", "../x", "\ud800"])
def test_unknown_handles_are_none(handle: str) -> None:
    key = make_key()
    keep(key.pk)
    assert read_kept(key_id=key.pk, handle=handle) is None


def test_is_gone_after_its_time() -> None:
    key = make_key()
    handle, later = keep(key.pk), keep(key.pk)
    now = timezone.now()
    KeptResult.objects.filter(pk=handle).update(expires_at=now - timedelta(seconds=1))
    assert read_kept(key_id=key.pk, handle=handle) is None
    assert forget_expired(now=now) == 1
    assert list(KeptResult.objects.values_list("pk", flat=True)) == [later]
    assert forget_expired(now=now + timedelta(minutes=14)) == 0
    assert forget_expired(now=now + timedelta(minutes=16)) == 1


def test_cannot_be_read_without_its_encryption_key() -> None:
    key = make_key()
    handle = keep(key.pk)
    new = Fernet.generate_key().decode()
    with override_settings(ENCRYPTION_KEYS=(new,)):
        assert read_kept(key_id=key.pk, handle=handle) is None
    with override_settings(ENCRYPTION_KEYS=(new, *settings.ENCRYPTION_KEYS)):
        assert read_kept(key_id=key.pk, handle=handle) == "the rest"


@pytest.mark.parametrize("character", ["x", "ä", "€"])
def test_surplus_is_cut_between_characters(character: str) -> None:
    key = make_key()
    size = len(character.encode())
    handle = keep(key.pk, character * (KEPT_RESULT_BYTES // size + 5))
    assert read_kept(key_id=key.pk, handle=handle) == character * (KEPT_RESULT_BYTES // size)


def test_oldest_go_past_the_limit_of_a_key() -> None:
    key, other = make_key(), make_key()
    others = keep(other.pk)
    handles = [keep(key.pk) for _ in range(KEPT_RESULTS_OF_A_KEY + 2)]
    kept = set(KeptResult.objects.filter(key=key).values_list("pk", flat=True))
    assert kept == set(handles[2:])
    assert read_kept(key_id=other.pk, handle=others)


def test_is_not_kept_for_a_key_that_is_gone() -> None:
    key = make_key()
    handle = keep(key.pk)
    key_id = key.pk
    key.delete()
    assert read_kept(key_id=key_id, handle=handle) is None
    assert keep_result(key_id=key_id, text="a") is None
    assert not KeptResult.objects.exists()
