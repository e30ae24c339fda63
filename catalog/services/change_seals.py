"""Seals the change record, and tells whether it is as it was recorded.

Changes are sealed a moment after they are made, by one process at a time: were it done in their own
transactions, these would wait for each other. The keys are those of the stored secrets, which are not in the
database.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from catalog.domain.change_seals import NO_SEAL, Recorded, is_seal, seal_change, seal_end
from catalog.domain.errors import Conflict
from catalog.models import Change, Heartbeat, LastSeal
from catalog.sealing import derive_record_key

logger = logging.getLogger(__name__)

SEALING_PART = "change_seals"  # the heartbeat that says that sealing has begun
SEAL_AT_ONCE = 100
SEAL_AT_MOST = 5_000
MOST_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class Verdict:
    """`waiting` changes are too new to be sealed. `last`, kept elsewhere, tells of all before it."""

    sealed: int
    waiting: int
    last: str
    problems: Sequence[str]


def seal_new(limit: int = SEAL_AT_MOST) -> int:
    """Seal what was recorded since the last time, or some of it. How many changes that were."""
    if _is_reset():
        logger.error("the seals of the change record were removed: run `manage.py verify_changes`")
        return 0
    count = 0
    while count < limit and Change.objects.filter(seal_number=None).exists():
        count += _seal_some()
    return count


def verify(*, after: str = NO_SEAL) -> Verdict:
    """Read all that is sealed. Costs with the length of the record; nobody waits meanwhile.

    `after` is a last seal that was kept elsewhere: the record must still contain it, and go on from it.
    """
    end = LastSeal.objects.filter(pk=1).first() or LastSeal(pk=1)
    return Verdict(
        sealed=end.number,
        waiting=Change.objects.filter(seal_number=None).count(),
        last=end.seal,
        problems=list(islice(chain(_find_reset(end, after), _find_problems(end, _keys())), MOST_PROBLEMS)),
    )


@transaction.atomic
def seal_anew() -> int:
    """Under the newest key, so that older ones can be dropped. Raises Conflict where a seal is broken."""
    end = _lock_end()
    if verify().problems:
        raise Conflict("the change record is not as it was recorded: `manage.py verify_changes` tells more")
    count, end.number, end.seal = end.number, 0, NO_SEAL
    while end.number < count:
        following = Change.objects.filter(seal_number__gt=end.number).order_by("seal_number")
        _seal_after(end, list(following[:SEAL_AT_ONCE]))
    return count


@transaction.atomic
def _seal_some() -> int:
    end = _lock_end()
    Heartbeat.objects.get_or_create(part=SEALING_PART, defaults={"at": timezone.now()})
    waiting = list(Change.objects.filter(seal_number=None).order_by("pk")[:SEAL_AT_ONCE])
    _seal_after(end, waiting)
    return len(waiting)


def _lock_end() -> LastSeal:
    LastSeal.objects.get_or_create(pk=1)
    return LastSeal.objects.select_for_update().get(pk=1)


def _seal_after(end: LastSeal, changes: Sequence[Change]) -> None:
    key = _keys()[0]
    for change in changes:
        number = end.number + 1
        change.seal_number, change.seal = number, _seal(change, number, end.seal, key)
        end.number, end.seal = number, change.seal
    Change.objects.bulk_update(changes, ["seal_number", "seal"])
    end.end = seal_end(number=end.number, last=end.seal, key=key)
    end.save()


def _is_reset() -> bool:
    """Whether there is no seal although sealing had begun. What stands there then is never sealed anew."""
    has_begun = Heartbeat.objects.filter(part=SEALING_PART).exists()
    return has_begun and not LastSeal.objects.filter(number__gt=0).exists()


def _find_reset(end: LastSeal, after: str) -> Iterator[str]:
    if _is_reset():
        yield "there are no seals any more, though there were: nothing tells whether a change is as recorded"
    if after and not Change.objects.filter(seal=after, seal_number__lte=end.number).exists():
        yield "the seal given is not among those of the record: what it covered was altered or removed"


def _find_problems(end: LastSeal, keys: Sequence[bytes]) -> Iterator[str]:
    """One that broke everything is told of as often as there are changes."""
    expected, previous = 1, NO_SEAL
    for change in Change.objects.filter(seal_number__lte=end.number).order_by("seal_number").iterator():
        number = change.seal_number or 0
        if number != expected:
            yield _tell_missing(expected, number - 1)
        elif not any(is_seal(change.seal, _seal(change, number, previous, key)) for key in keys):
            yield f"change {number} is not as it was recorded: {change}, {change.at:%F %T}"
        expected, previous = number + 1, change.seal
    if expected != end.number + 1:
        yield _tell_missing(expected, end.number)
    yield from _find_wrong_end(end, keys)


def _find_wrong_end(end: LastSeal, keys: Sequence[bytes]) -> Iterator[str]:
    """Seals that go on behind the end, or an end that somebody else wrote."""
    if Change.objects.filter(seal_number__gt=end.number).exists() and not _has_moved(end):
        yield f"changes after number {end.number} carry seals, though the seals end there"
    ends = (seal_end(number=end.number, last=end.seal, key=key) for key in keys)
    if end.number and not any(is_seal(end.end, made) for made in ends):
        yield f"the end of the seals, number {end.number}, is not as it was written"


def _has_moved(end: LastSeal) -> bool:
    """Whether others sealed since we began to read."""
    return LastSeal.objects.filter(pk=1, number__gt=end.number).exists()


def _seal(change: Change, number: int, previous: str, key: bytes) -> str:
    recorded = Recorded(
        id=change.pk,
        at=change.at,
        actor=change.actor,
        subject=change.subject,
        name=change.name,
        action=change.action,
        before=change.before,
        after=change.after,
    )
    return seal_change(recorded, number=number, previous=previous, key=key)


def _keys() -> list[bytes]:
    return [derive_record_key(key) for key in settings.ENCRYPTION_KEYS]


def _tell_missing(first: int, last: int) -> str:
    return f"change {first} is missing" if first == last else f"changes {first} to {last} are missing"
