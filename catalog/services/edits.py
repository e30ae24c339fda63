"""Optimistic locking of edits: the version that an edit was made from, and what has changed since.

A version is the `ETag` of a GET and a hidden field of a form. It holds a short code of every setting, so that
it changes with the settings alone and shows which of them have changed.
"""

import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from django.conf import settings

from catalog.access.actors import hide_prefix
from catalog.domain.errors import ChangedField, OutdatedEdit
from catalog.models import Change
from catalog.models.changes import Subject

CODE_BYTES = 6
# How far back it is looked for who made a change: of the row's own records, and of those of many tools.
LOOKED_AT = 100
BULK_LOOKED_AT = 20
NO_STRONG_TAG = "If-Match has no tag that could match: send the ETag as it was given, in double quotes"

FieldValues = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Precondition:
    """The versions that an edit may have been made from.

    A PATCH with `If-Match` is refused after any change; a form only where it would overwrite one.
    """

    versions: tuple[str, ...]
    is_strict: bool = False

    @classmethod
    def of_form(cls, version: str) -> "Precondition | None":
        """None for a form without a version, as scripts send it."""
        return cls((version,)) if version else None


@dataclass(frozen=True, slots=True)
class EditedRow:
    """A row read under the lock that the edit writes under.

    `shown` has the values that may be shown, and may leave out secret ones.
    """

    subject: Subject
    name: str
    present: FieldValues
    shown: FieldValues
    pk: int | None = None


def encode_version(values: FieldValues) -> str:
    """Short, for a header or a form. Keyed, so that values cannot be guessed from it."""
    codes = sorted(_code(field, value) for field, value in values.items())
    return urlsafe_b64encode(b"".join(codes)).decode()


def is_untouched(version: str, field: str, value: object) -> bool:
    """Whether a field had this value in a version."""
    return _code(field, value) in _codes_of(version)


def require_current(
    row: EditedRow, precondition: Precondition | None, *, wanted: FieldValues | None = None
) -> None:
    """Raises OutdatedEdit where the row has changed since it was read; `wanted` is what is to be written.

    Call while holding the lock.
    """
    if precondition is None:
        return
    changed = [_changed_since(row, version) for version in precondition.versions]
    if not precondition.is_strict:
        would_write = {field for field in wanted or {} if (wanted or {})[field] != row.present.get(field)}
        changed = [[field for field in fields if field in would_write] for fields in changed]
    if changed and not all(changed):
        return
    fields = changed[0] if changed else []
    raise OutdatedEdit(
        f"{row.subject} {row.name}",
        tuple(_describe(row, fields)),
        version=encode_version(row.present),
        reason="" if precondition.versions else NO_STRONG_TAG,
    )


def _changed_since(row: EditedRow, version: str) -> list[str]:
    codes = _codes_of(version)
    return [field for field, value in row.present.items() if _code(field, value) not in codes]


def _describe(row: EditedRow, fields: list[str]) -> list[ChangedField]:
    found = _find_changes(row, fields)
    return [
        ChangedField(
            field=field,
            value=row.shown.get(field),
            is_shown=field in row.shown,
            actor=hide_prefix(found[field].actor) if field in found else "",
            at=found[field].at if field in found else None,
        )
        for field in fields
    ]


def _find_changes(row: EditedRow, fields: list[str]) -> dict[str, Change]:
    """The newest record of each field. A record of a server does not say which secrets changed."""
    found: dict[str, Change] = {}
    own = Change.objects.filter(subject=row.subject, name=row.name)[:LOOKED_AT]
    for change in own:
        recorded = {*change.before, *change.after}
        for field in fields:
            if field in recorded or ("secrets" in recorded and field not in row.shown):
                found.setdefault(field, change)
    if row.subject == Subject.TOOL:
        _find_bulk_changes(row, fields, found)
    return found


def _find_bulk_changes(row: EditedRow, fields: list[str], found: dict[str, Change]) -> None:
    for change in Change.objects.filter(subject=row.subject, name__regex=r" tools?$")[:BULK_LOOKED_AT]:
        for recorded, values in change.after.items():
            field = "tags" if recorded.startswith("tag ") else recorded
            ids = values.values() if isinstance(values, dict) else ()
            is_newer = field not in found or found[field].at < change.at
            if field in fields and is_newer and any(row.pk in listed for listed in ids):
                found[field] = change


def _code(field: str, value: object) -> bytes:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = json.dumps([field, value], sort_keys=True, default=str)
    return hmac.digest(settings.SECRET_KEY.encode(), text.encode(), sha256)[:CODE_BYTES]


def _codes_of(version: str) -> frozenset[bytes]:
    """Empty for a text that is no version: then everything counts as changed."""
    try:
        codes = urlsafe_b64decode(version.encode("ascii", "replace"))
    except NotBase64:
        return frozenset()
    return frozenset(codes[start : start + CODE_BYTES] for start in range(0, len(codes), CODE_BYTES))
