"""Signatures of the change record: each covers a change and the signature before it (an HMAC chain).

Altering, removing or reordering a change without the key invalidates all later signatures.
"""

import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

NO_SIGNATURE = ""  # before the first one
_EXACT_BELOW = 2**53  # larger numbers are the same in every database only as floats
_FLOATS_BELOW = 10**308


@dataclass(frozen=True, slots=True)
class SignedFields:
    """The signed fields of a change, in a form that is the same in every database."""

    id: int
    at: datetime
    actor: str
    subject: str
    name: str
    action: str
    before: Mapping[str, object]
    after: Mapping[str, object]


def sign_change(change: SignedFields, *, number: int, previous: str, key: bytes) -> str:
    told = (change.actor, change.subject, change.name, change.action)
    at = change.at.astimezone(UTC).isoformat(timespec="microseconds")
    return _sign(key, ["change", number, previous, change.id, at, *told, change.before, change.after])


def sign_end(*, number: int, last: str, key: bytes) -> str:
    """Signs the last number: without it the newest changes could be cut off unnoticed."""
    return _sign(key, ["end", number, last])


def is_signature(text: str, made: str) -> bool:
    return hmac.compare_digest(text.encode(), made.encode())


def _sign(key: bytes, parts: Sequence[object]) -> str:
    text = json.dumps([_canonical(part) for part in parts], sort_keys=True, separators=(",", ":"))
    return hmac.digest(key, text.encode(), "sha256").hex()


def _canonical(value: object) -> object:
    """The canonical form of numbers before signing, since databases differ: 1.0 is 1, 1e+16 its digits."""
    match value:
        case bool():
            return value
        case int() | float() if abs(value) < _EXACT_BELOW and value == int(value):
            return int(value)
        case int():
            return float(value) if abs(value) < _FLOATS_BELOW else str(value)
        case Mapping():
            return {name: _canonical(one) for name, one in value.items()}
        case list() | tuple():
            return [_canonical(one) for one in value]
    return value
