"""Signs the change record, and verifies the signatures.

Changes are signed a moment after they are made, by one process at a time: signing in their own transactions
would serialise these. The keys are derived from the encryption keys, which are not in the database.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from catalog.domain.change_signatures import NO_SIGNATURE, SignedFields, is_signature, sign_change, sign_end
from catalog.domain.errors import Conflict
from catalog.models import Change, Heartbeat, LastSeal
from catalog.sealing import derive_record_key

logger = logging.getLogger(__name__)

SIGNING_PART = "change_seals"  # the heartbeat row that says that signing has begun; the name is stored
SIGN_AT_ONCE = 100
SIGN_AT_MOST = 5_000
MOST_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class Verification:
    """`waiting` changes are not signed yet. `last`, kept elsewhere, proves everything before it."""

    signed: int
    waiting: int
    last: str
    problems: Sequence[str]


def sign_new(limit: int = SIGN_AT_MOST) -> int:
    """Seal what was recorded since the last time, or some of it. How many changes that were.

    Nothing is signed where the signatures so far were removed, or do not end as they were written: whoever
    altered the record would have it signed again.
    """
    if _is_reset():
        logger.error("the signatures of the change record were removed: run `manage.py verify_changes`")
        return 0
    count = 0
    while count < limit and Change.objects.filter(seal_number=None).exists():
        signed = _sign_some()
        if not signed:
            break
        count += signed
    return count


def verify(*, after: str = NO_SIGNATURE) -> Verification:
    """Check all signatures. Takes time in proportion to the record and blocks nobody.

    `after` is a last signature that was kept elsewhere: the record must still contain it.
    """
    end = LastSeal.objects.filter(pk=1).first() or LastSeal(pk=1)
    return Verification(
        signed=end.number,
        waiting=Change.objects.filter(seal_number=None).count(),
        last=end.seal,
        problems=list(islice(chain(_find_reset(end, after), _find_problems(end, _keys())), MOST_PROBLEMS)),
    )


@transaction.atomic
def sign_again() -> int:
    """Sign everything again with the newest key, so that older keys can be dropped. Raises Conflict where a
    signature is wrong.
    """
    end = _lock_end()
    if verify().problems:
        raise Conflict("the change record is not as it was recorded: `manage.py verify_changes` tells more")
    count, end.number, end.seal = end.number, 0, NO_SIGNATURE
    while end.number < count:
        following = Change.objects.filter(seal_number__gt=end.number).order_by("seal_number")
        _sign_after(end, list(following[:SIGN_AT_ONCE]))
    return count


@transaction.atomic
def _sign_some() -> int:
    end = _lock_end()
    if any(_find_wrong_end(end, _keys())):
        logger.error("the signatures of the change record were altered: run `manage.py verify_changes`")
        return 0
    Heartbeat.objects.get_or_create(part=SIGNING_PART, defaults={"at": timezone.now()})
    waiting = list(Change.objects.filter(seal_number=None).order_by("pk")[:SIGN_AT_ONCE])
    _sign_after(end, waiting)
    return len(waiting)


def _lock_end() -> LastSeal:
    LastSeal.objects.get_or_create(pk=1)
    return LastSeal.objects.select_for_update().get(pk=1)


def _sign_after(end: LastSeal, changes: Sequence[Change]) -> None:
    key = _keys()[0]
    for change in changes:
        number = end.number + 1
        change.seal_number, change.seal = number, _sign(change, number, end.seal, key)
        end.number, end.seal = number, change.seal
    Change.objects.bulk_update(changes, ["seal_number", "seal"])
    end.end = sign_end(number=end.number, last=end.seal, key=key)
    end.save()


def _is_reset() -> bool:
    """Whether there is no signature although signing had begun. Then nothing is signed any more."""
    has_begun = Heartbeat.objects.filter(part=SIGNING_PART).exists()
    return has_begun and not LastSeal.objects.filter(number__gt=0).exists()


def _find_reset(end: LastSeal, after: str) -> Iterator[str]:
    if _is_reset():
        yield "the signatures were removed: changes cannot be verified any more"
    if after and not Change.objects.filter(seal=after, seal_number__lte=end.number).exists():
        yield "the signature given is not in the record: what it covered was altered or removed"


def _find_problems(end: LastSeal, keys: Sequence[bytes]) -> Iterator[str]:
    """Yields one problem per change, so an early break yields many."""
    expected, previous = 1, NO_SIGNATURE
    for change in Change.objects.filter(seal_number__lte=end.number).order_by("seal_number").iterator():
        number = change.seal_number or 0
        if number != expected:
            yield _describe_missing(expected, number - 1)
        elif not any(is_signature(change.seal, _sign(change, number, previous, key)) for key in keys):
            yield f"change {number} is not as it was recorded: {change}, {change.at:%F %T}"
        expected, previous = number + 1, change.seal
    if expected != end.number + 1:
        yield _describe_missing(expected, end.number)
    if any(_find_wrong_end(end, keys)):
        yield from _find_wrong_end(end, keys)
        yield "new changes are not signed any more: their signatures would go on from an end that is not ours"


def _find_wrong_end(end: LastSeal, keys: Sequence[bytes]) -> Iterator[str]:
    """Seals that go on behind the end, an end without its change, or one that somebody else wrote."""
    if Change.objects.filter(seal_number__gt=end.number).exists() and not _has_moved(end):
        yield f"changes after number {end.number} carry signatures, though the last recorded one is there"
    ends = (sign_end(number=end.number, last=end.seal, key=key) for key in keys)
    if end.number and not any(is_signature(end.end, made) for made in ends):
        yield f"the row of the last signature, number {end.number}, is not as it was written"
    elif end.number and not Change.objects.filter(seal_number=end.number, seal=end.seal).exists():
        yield f"the change of the last signature, number {end.number}, is not there as it was signed"


def _has_moved(end: LastSeal) -> bool:
    """Whether others have signed since we began to read."""
    return LastSeal.objects.filter(pk=1, number__gt=end.number).exists()


def _sign(change: Change, number: int, previous: str, key: bytes) -> str:
    recorded = SignedFields(
        id=change.pk,
        at=change.at,
        actor=change.actor,
        subject=change.subject,
        name=change.name,
        action=change.action,
        before=change.before,
        after=change.after,
    )
    return sign_change(recorded, number=number, previous=previous, key=key)


def _keys() -> list[bytes]:
    return [derive_record_key(key) for key in settings.ENCRYPTION_KEYS]


def _describe_missing(first: int, last: int) -> str:
    return f"change {first} is missing" if first == last else f"changes {first} to {last} are missing"
