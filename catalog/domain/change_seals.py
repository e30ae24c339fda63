"""Seals over the change record: each covers a change and the seal before it.

Whoever alters, removes or reorders a change without the key breaks the seals from there on.
"""

import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

NO_SEAL = ""  # what comes before the first one
_EXACT_BELOW = 2**53  # larger numbers are the same in every database only as floats
_FLOATS_BELOW = 10**308


@dataclass(frozen=True, slots=True)
class Recorded:
    """What is sealed of a change: all that it tells, in the form in which any database gives it back."""

    id: int
    at: datetime
    actor: str
    subject: str
    name: str
    action: str
    before: Mapping[str, object]
    after: Mapping[str, object]


def seal_change(change: Recorded, *, number: int, previous: str, key: bytes) -> str:
    told = (change.actor, change.subject, change.name, change.action)
    at = change.at.astimezone(UTC).isoformat(timespec="microseconds")
    return _seal(key, ["change", number, previous, change.id, at, *told, change.before, change.after])


def seal_end(*, number: int, last: str, key: bytes) -> str:
    """Over the last seal's number: without it the newest changes could be cut off."""
    return _seal(key, ["end", number, last])


def is_seal(text: str, made: str) -> bool:
    return hmac.compare_digest(text.encode(), made.encode())


def _seal(key: bytes, parts: Sequence[object]) -> str:
    text = json.dumps([_settle(part) for part in parts], sort_keys=True, separators=(",", ":"))
    return hmac.digest(key, text.encode(), "sha256").hex()


def _settle(value: object) -> object:
    """One spelling for a number, whichever of its spellings a database keeps: 1.0 is 1, 1e+16 its digits."""
    match value:
        case bool():
            return value
        case int() | float() if abs(value) < _EXACT_BELOW and value == int(value):
            return int(value)
        case int():
            return float(value) if abs(value) < _FLOATS_BELOW else str(value)
        case Mapping():
            return {name: _settle(one) for name, one in value.items()}
        case list() | tuple():
            return [_settle(one) for one in value]
    return value
