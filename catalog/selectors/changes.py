"""The change record as pages show it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.urls import NoReverseMatch, reverse

from catalog.domain.errors import NotFound
from catalog.domain.server_names import why_refused
from catalog.models import Change, LastSeal, Tool
from catalog.models.changes import Action, Subject
from catalog.selectors.paging import Page, cut_page

RECENT_ROWS = 6
_PAGES = {Subject.SERVER: "server_detail", Subject.TOOL: "tool_detail", Subject.POLICY: "policy_detail"}


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    actor: str = ""
    subject: Subject | None = None
    action: Action | None = None
    name: str = ""
    since: datetime | None = None
    until: datetime | None = None

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

    @property
    def address(self) -> str | None:
        """The page of what changed, where it has one of its own and may still be there."""
        change = self.change
        is_many = any(isinstance(value, dict) for value in change.before.values())
        if change.action == Action.DELETED or change.subject not in _PAGES or is_many:
            return None
        if change.subject == Subject.SERVER and why_refused(change.name):
            return None
        try:
            return reverse(_PAGES[Subject(change.subject)], args=[change.name])
        except NoReverseMatch:  # a name that no page can have
            return None


def find_named_since(names: Sequence[str], moment: datetime) -> set[str]:
    """Those of the qualified names whose tools may have had another name then, or were not there: tools first
    seen after the moment, and those of a server whose kind was changed after it.
    """
    later = Change.objects.filter(subject=Subject.SERVER, action=Action.CHANGED, at__gt=moment)
    renamed = later.filter(name=OuterRef("server__name"), after__has_key="kind")
    tools = Tool.objects.filter(qualified_name__in=names).order_by()
    found = tools.filter(Q(first_seen_at__gt=moment) | Exists(renamed))
    return set(found.values_list("qualified_name", flat=True))


def changes_for_table(
    wanted: ChangeFilter, *, page: str | int = 1, with_keys: bool = True
) -> Page[ChangeRow]:
    """`with_keys` is for who may see keys: a change of one tells its name and how it begins."""
    changes = cut_page(_shown(_matching(wanted), with_keys), page)
    return changes.with_rows([_row(change) for change in changes.rows])


def recent_changes(limit: int = RECENT_ROWS, *, with_keys: bool = True) -> list[Change]:
    return list(_shown(Change.objects.all(), with_keys)[:limit])


def changes_of(subject: Subject, name: str, *, limit: int = RECENT_ROWS) -> list[ChangeRow]:
    return [_row(change) for change in Change.objects.filter(subject=subject, name=name)[:limit]]


def newest_change(subject: Subject, name: str) -> Change | None:
    return Change.objects.filter(subject=subject, name=name).first()


def find_change(change_id: int) -> Change:
    change = Change.objects.filter(pk=change_id).first()
    if change is None:
        raise NotFound(f"There is no change {change_id}.")
    return change


def count_sealed() -> int:
    """How many changes, from the first one on, can no longer be altered unseen."""
    return LastSeal.objects.values_list("number", flat=True).first() or 0


def known_actors() -> list[str]:
    return list(Change.objects.order_by("actor").values_list("actor", flat=True).distinct())


def _shown(changes: "QuerySet[Change]", with_keys: bool) -> "QuerySet[Change]":
    return changes if with_keys else changes.exclude(subject=Subject.KEY)


def _matching(wanted: ChangeFilter) -> "QuerySet[Change]":
    exact = {"actor": wanted.actor, "subject": wanted.subject, "action": wanted.action}
    changes = Change.objects.filter(**{field: value for field, value in exact.items() if value})
    if wanted.since is not None:
        changes = changes.filter(at__gte=wanted.since)
    if wanted.until is not None:
        changes = changes.filter(at__lte=wanted.until)
    return changes.filter(name__icontains=wanted.name) if wanted.name else changes


def list_differences(before: Mapping[str, object], after: Mapping[str, object]) -> list[Difference]:
    """Field by field, those alike left out."""
    return [
        Difference(
            field=field,
            before=_count_ids(before.get(field)),
            after=_count_ids(after.get(field)),
            had_before=field in before,
            has_after=field in after,
        )
        for field in sorted({*before, *after})
        if field not in before or field not in after or before[field] != after[field]
    ]


def _count_ids(value: object) -> object:
    """A change of many tools keeps their ids by value, which tell a reader nothing but their number."""
    if not isinstance(value, dict):
        return value
    return ", ".join(
        f"{kept} ({len(ids):,})" if isinstance(ids, list) else f"{kept} {ids}" for kept, ids in value.items()
    )


def _row(change: Change) -> ChangeRow:
    return ChangeRow(change=change, differences=list_differences(change.before, change.after))
