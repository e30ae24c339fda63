"""Altering the change record in the database without the key is detected."""

import json
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db.models import F
from pytest_django import Settings

from catalog.models import Change, Heartbeat, LastSeal
from catalog.services import change_signatures
from catalog.tasks import seal_changes
from tests.harness.rows import make_change

pytestmark = pytest.mark.django_db


def fill(count: int = 6) -> None:
    for number in range(count):
        make_change(name=f"thing-{number}", before={"a": number, "b": 0.5}, after={"a": number + 1, "b": 1.0})
    seal_changes()


def verify(*options: str) -> tuple[int, str]:
    """The command's exit code and what it says."""
    out = StringIO()
    try:
        call_command("verify_changes", *options, stdout=out)
    except SystemExit as end:
        return int(str(end.code)), out.getvalue()
    return 0, out.getvalue()


def test_record_that_nobody_touched_is_whole() -> None:
    assert verify()[0] == 0
    fill()
    make_change()
    code, said = verify()
    assert code == 0
    assert "6 changes are as they were recorded" in said
    assert "1 are not signed yet" in said
    assert LastSeal.objects.get().seal in said
    seal_changes()
    seal_changes()
    assert "7 changes are as they were recorded" in verify()[1]


def test_many_are_sealed_in_pieces_and_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_signatures, "SIGN_AT_ONCE", 2)
    for _ in range(5):
        make_change()
    assert change_signatures.sign_new(limit=3) == 4
    assert change_signatures.sign_new() == 1
    assert list(Change.objects.order_by("pk").values_list("seal_number", flat=True)) == [1, 2, 3, 4, 5]
    assert verify()[0] == 0


def of(number: int) -> Any:
    return Change.objects.filter(seal_number=number)


def swap_first_two() -> None:
    first, second = of(1).get(), of(2).get()
    of(1).update(seal_number=99)
    Change.objects.filter(pk=second.pk).update(seal_number=1)
    Change.objects.filter(pk=first.pk).update(seal_number=2)


def cut_off_the_newest() -> None:
    """And pass the last but one off as the last."""
    of(6).delete()
    LastSeal.objects.update(number=5, seal=of(5).get().seal)


TAMPERING: dict[str, tuple[Callable[[], object], str]] = {
    "another actor": (lambda: of(3).update(actor="eve"), "change 3 is not as it was recorded"),
    "another value": (lambda: of(3).update(after={"a": 9}), "change 3 is not as it was recorded"),
    "another time": (lambda: of(6).update(at=of(5).get().at), "change 6 is not as it was recorded"),
    "one removed": (lambda: of(3).delete(), "change 3 is missing"),
    "some removed": (lambda: Change.objects.filter(seal_number__in=[2, 3]).delete(), "changes 2 to 3 are"),
    "the first removed": (lambda: of(1).delete(), "change 1 is missing"),
    "the newest removed": (lambda: of(6).delete(), "change 6 is missing"),
    "the newest cut off": (cut_off_the_newest, "the row of the last signature, number 5"),
    "two swapped": (swap_first_two, "change 1 is not as it was recorded"),
    "a seal of another": (lambda: of(3).update(seal=of(2).get().seal), "change 3 is not as it was"),
    "a seal taken off": (lambda: of(3).update(seal_number=None), "change 3 is missing"),
    "numbers moved on": (lambda: of(6).update(seal_number=F("seal_number") + 1), "change 6 is missing"),
    "the end removed": (lambda: LastSeal.objects.all().delete(), "though the last recorded one is there"),
    "all but the end removed": (lambda: Change.objects.all().delete(), "changes 1 to 6 are missing"),
}


@pytest.mark.parametrize("what", TAMPERING)
def test_tampering_is_told(what: str) -> None:
    tamper, told = TAMPERING[what]
    fill()
    tamper()
    code, said = verify()
    assert code == 1
    assert told in said
    make_change()  # there is something to seal: sealing does not mend what was altered
    seal_changes()
    assert verify()[0] == 1


def seal_anew_from_the_first() -> None:
    """As whoever can write to the database may try, without touching the note that sealing has begun."""
    LastSeal.objects.update(number=1, seal=of(1).get().seal)
    Change.objects.filter(seal_number__gt=1).update(seal_number=None, seal="")
    Change.objects.filter(name="thing-3").delete()
    Change.objects.filter(name="thing-2").update(actor="eve")


def forge_the_end() -> None:
    """The newest go, and the end is that of another time under the right number."""
    of(6).delete()
    LastSeal.objects.update(number=5, seal=of(5).get().seal, end="0" * 64)


@pytest.mark.parametrize(
    "tamper",
    [
        seal_anew_from_the_first,
        cut_off_the_newest,
        forge_the_end,
        lambda: of(6).delete(),
        lambda: LastSeal.objects.update(number=7),
    ],
)
def test_nothing_is_sealed_behind_an_end_that_is_not_as_it_was_written(
    tamper: Callable[[], object], caplog: pytest.LogCaptureFixture
) -> None:
    fill()
    tamper()
    new = make_change(name="after the attack")
    signed = list(Change.objects.exclude(seal_number=None).values_list("pk", flat=True))
    assert change_signatures.sign_new() == 0
    assert "verify_changes" in caplog.text
    assert list(Change.objects.exclude(seal_number=None).values_list("pk", flat=True)) == signed
    new.refresh_from_db()
    assert new.seal_number is None
    code, said = verify()
    assert code == 1
    assert "new changes are not signed any more" in said


def take_all_seals_off() -> None:
    """As whoever can write to the database may try, to have an altered record sealed anew."""
    Change.objects.update(seal_number=None, seal="")
    LastSeal.objects.all().delete()
    Change.objects.filter(name="thing-3").delete()
    Change.objects.filter(name="thing-1").update(actor="eve")


def test_record_without_its_seals_is_not_sealed_anew() -> None:
    fill()
    take_all_seals_off()
    seal_changes()
    assert not Change.objects.exclude(seal_number=None).exists()
    code, said = verify()
    assert code == 1
    assert "the signatures were removed" in said


def test_seal_that_was_kept_tells_of_a_record_that_was_sealed_anew() -> None:
    fill()
    kept = LastSeal.objects.get().seal
    make_change()
    seal_changes()
    assert verify("--after", kept)[0] == 0
    take_all_seals_off()
    Heartbeat.objects.all().delete()  # and with it the note that there were seals
    seal_changes()
    assert verify()[0] == 0
    code, said = verify("--after", kept)
    assert code == 1
    assert "the signature given is not in the record" in said


def test_forged_number_does_not_hide_a_change() -> None:
    fill()
    make_change(seal_number=0)
    assert verify()[0] == 1


def test_seals_under_another_key_do_not_count(settings: Settings) -> None:
    fill()
    settings.ENCRYPTION_KEYS = (Fernet.generate_key().decode(),)
    code, said = verify()
    assert code == 1
    assert "change 1 is not as it was recorded" in said


def test_new_key_takes_over_and_the_old_one_can_go(settings: Settings) -> None:
    old, new = (Fernet.generate_key().decode() for _ in range(2))
    settings.ENCRYPTION_KEYS = (old,)
    fill(3)
    settings.ENCRYPTION_KEYS = (new, old)
    fill(3)
    assert verify()[0] == 0
    call_command("rotate_secrets", stdout=StringIO())
    settings.ENCRYPTION_KEYS = (new,)
    code, said = verify()
    assert (code, said.splitlines()[0]) == (0, "6 changes are as they were recorded")


def test_new_key_is_not_put_under_what_was_altered() -> None:
    fill()
    of(3).update(actor="eve")
    before = list(Change.objects.values())
    with pytest.raises(CommandError, match="verify_changes"):
        call_command("rotate_secrets")
    assert list(Change.objects.values()) == before


def test_many_problems_are_cut_short() -> None:
    fill(30)
    Change.objects.update(actor="eve")
    assert len(change_signatures.verify().problems) == change_signatures.MOST_PROBLEMS


def test_verdict_as_json() -> None:
    fill(2)
    out = StringIO()
    call_command("verify_changes", "--json", stdout=out)
    seal = LastSeal.objects.get().seal
    assert json.loads(out.getvalue()) == {"signed": 2, "waiting": 0, "last": seal, "problems": []}
