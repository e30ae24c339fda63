"""The change record as pages show it."""

from dataclasses import dataclass

from django.db.models import QuerySet

from catalog.models import Change
from catalog.models.changes import Action, Subject
from catalog.selectors.paging import Page, cut_page

RECENT_ROWS = 6


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    actor: str = ""
    subject: Subject | None = None
    action: Action | None = None
    name: str = ""

    @property
    def is_default(self) -> bool:
        return self == ChangeFilter()


@dataclass(frozen=True, slots=True)
class Difference:
    """One field of a change, and on which sides it was there: unset and absent are not the same."""

    field: str
    before: object
    after: object
    had_before: bool
    has_after: bool


@dataclass(frozen=True, slots=True)
class ChangeRow:
    change: Change
    differences: list[Difference]


def changes_for_table(wanted: ChangeFilter, *, page: str | int = 1) -> Page[ChangeRow]:
    changes = cut_page(_matching(wanted), page)
    return changes.with_rows([_row(change) for change in changes.rows])


def recent_changes(limit: int = RECENT_ROWS) -> list[Change]:
    return list(Change.objects.all()[:limit])


def changes_of(subject: Subject, name: str, *, limit: int = RECENT_ROWS) -> list[ChangeRow]:
    return [_row(change) for change in Change.objects.filter(subject=subject, name=name)[:limit]]


def known_actors() -> list[str]:
    return list(Change.objects.order_by("actor").values_list("actor", flat=True).distinct())


def _matching(wanted: ChangeFilter) -> "QuerySet[Change]":
    exact = {"actor": wanted.actor, "subject": wanted.subject, "action": wanted.action}
    changes = Change.objects.filter(**{field: value for field, value in exact.items() if value})
    return changes.filter(name__icontains=wanted.name) if wanted.name else changes


def _row(change: Change) -> ChangeRow:
    fields = sorted({*change.before, *change.after})
    return ChangeRow(
        change=change,
        differences=[
            Difference(
                field=field,
                before=change.before.get(field),
                after=change.after.get(field),
                had_before=field in change.before,
                has_after=field in change.after,
            )
            for field in fields
        ],
    )
