"""Edit conflicts: what changed since a form was opened, and the form with those changes merged."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from django import forms
from django.http import HttpRequest, QueryDict

from catalog.domain.errors import ChangedField, OutdatedEdit
from catalog.services import edits

VERSION = "version"


@dataclass(frozen=True, slots=True)
class FieldConflict:
    """A field that somebody else changed: its current value and the form's."""

    label: str
    change: ChangedField
    typed: object
    is_typed: bool


@dataclass(frozen=True, slots=True)
class EditConflict:
    """`data` is the form's content, with others' changes in fields that the editor had not changed."""

    fields: tuple[FieldConflict, ...]
    version: str
    data: QueryDict

    @property
    def replaces(self) -> bool:
        """Whether saving the form would overwrite one of the changes."""
        return any(field.is_typed for field in self.fields)


def precondition_of_form(request: HttpRequest) -> edits.Precondition | None:
    """None where the form has no version: scripts may leave it out."""
    return edits.Precondition.of_form(request.POST.get(VERSION, ""))


def version_in(request: HttpRequest, present: str) -> str:
    """The version of the form: the one it was opened with, else the current one."""
    return request.POST.get(VERSION, "") or present


def merge_form(
    request: HttpRequest,
    outdated: OutdatedEdit,
    *,
    wanted: Mapping[str, object],
    present: forms.Form,
    label_of: Callable[[str], str],
    paired_fields: Mapping[str, str] | None = None,
    form_names: Mapping[str, str] | None = None,
) -> EditConflict:
    """The form with the others' changes merged, and the conflicts.

    `wanted` are the form's values as the engine has them, `present` is the form as it would be opened now.
    `paired_fields` names, for a field, another one of the form that goes with it; `form_names` those that
    the form calls otherwise.
    """
    read = request.POST.get(VERSION, "")
    conflicts = tuple(
        FieldConflict(
            label=label_of(change.field),
            change=change,
            typed=wanted.get(change.field),
            is_typed=not edits.is_untouched(read, change.field, wanted.get(change.field)),
        )
        for change in outdated.changed
    )
    theirs = [one.change.field for one in conflicts if not one.is_typed]
    theirs += [other for field, other in (paired_fields or {}).items() if field in theirs]
    names = [(form_names or {}).get(field, field) for field in theirs]
    return EditConflict(conflicts, outdated.version, _take_over(request.POST, present, names))


def describe_conflict(outdated: OutdatedEdit, write: Callable[[object], str]) -> str:
    """A sentence for a form of one field: who changed it, and to what."""
    (change,) = outdated.changed
    who = f"{change.actor} has" if change.actor else "it was"
    return f"{who} set it to {write(change.value)} meanwhile"


def _take_over(posted: QueryDict, present: forms.Form, fields: Collection[str]) -> QueryDict:
    data = posted.copy()
    for name in (name for name in fields if name in present.fields):
        value = present[name].value()
        data.pop(name, None)
        if value is True:
            data[name] = "on"
        elif isinstance(present.fields[name], forms.MultipleChoiceField):
            data.setlist(name, value or [])
        elif value not in (None, False):
            data[name] = str(value)
    return data
