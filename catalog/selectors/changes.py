"""The change record for pages."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.urls import NoReverseMatch, reverse

from catalog.access.actors import hide_prefix
from catalog.console.paging import Page, cut_page
from catalog.domain.errors import NotFound
from catalog.domain.server_names import why_name_refused
from catalog.models import Change, LastSeal, Tool
from catalog.models.changes import Action, Subject

RECENT_ROWS = 6
SHOWN_OF_MANY = 300  # of servers that one change has added
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
    """One field of a change, and on which sides it was present: null and absent differ."""

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
        """The page of what changed, where it has one and may still exist."""
        change = self.change
        is_many = any(isinstance(value, dict) for value in (*change.before.values(), *change.after.values()))
        if change.action == Action.DELETED or change.subject not in _PAGES or is_many:
            return None
        if change.subject == Subject.SERVER and why_name_refused(change.name):
            return None
        try:
            return reverse(_PAGES[Subject(change.subject)], args=[change.name])
        except NoReverseMatch:  # a name that no page can have
            return None


def find_named_since(names: Sequence[str], moment: datetime) -> set[str]:
    """Those of the qualified names that may have belonged to another tool, or to none, at that moment: tools
    first seen after it, and tools of a server whose kind changed after it.
    """
    later = Change.objects.filter(subject=Subject.SERVER, action=Action.CHANGED, at__gt=moment)
    renamed = later.filter(name=OuterRef("server__name"), after__has_key="kind")
    tools = Tool.objects.filter(qualified_name__in=names).order_by()
    found = tools.filter(Q(first_seen_at__gt=moment) | Exists(renamed))
    return set(found.values_list("qualified_name", flat=True))


def changes_for_table(
    wanted: ChangeFilter, *, page: str | int = 1, with_keys: bool = True
) -> Page[ChangeRow]:
    """`with_keys` is for users who may see keys: a key's change shows its name and prefix."""
    wanted_actor = Q() if with_keys else _by(wanted.actor)
    wanted = wanted if with_keys else replace(wanted, actor="")
    changes = cut_page(_shown(_matching(wanted).filter(wanted_actor), with_keys), page)
    return changes.with_rows([_row(change) for change in changes.rows])


def recent_changes(limit: int = RECENT_ROWS, *, with_keys: bool = True) -> list[Change]:
    return list(_shown(Change.objects.all(), with_keys)[:limit])


def changes_of(subject: Subject, name: str, *, limit: int = RECENT_ROWS) -> list[ChangeRow]:
    return [_row(change) for change in Change.objects.filter(subject=subject, name=name)[:limit]]


def find_change(change_id: int) -> Change:
    change = Change.objects.filter(pk=change_id).first()
    if change is None:
        raise NotFound(f"There is no change {change_id}.")
    return change


def count_signed() -> int:
    """How many changes are signed, so that altering one would be detected."""
    return LastSeal.objects.values_list("number", flat=True).first() or 0


def known_actors(*, with_keys: bool = True) -> list[str]:
    changes = _shown(Change.objects.order_by("actor"), with_keys)
    actors: Iterable[str] = changes.values_list("actor", flat=True).distinct()
    return list(actors) if with_keys else sorted({hide_prefix(actor) for actor in actors})


def _shown(changes: "QuerySet[Change]", with_keys: bool) -> "QuerySet[Change]":
    return changes if with_keys else changes.exclude(subject=Subject.KEY)


def _by(actor: str) -> Q:
    """Changes by an actor whose key's beginning is not shown, and is not told by what is found either."""
    if not actor:
        return Q()
    label = hide_prefix(actor)
    former = rf"^{re.escape(label)} \([0-9a-z]{{8}}\)$"
    return Q(actor=label) | Q(actor__startswith="key ", actor__regex=former)


def _matching(wanted: ChangeFilter) -> "QuerySet[Change]":
    exact = {"actor": wanted.actor, "subject": wanted.subject, "action": wanted.action}
    changes = Change.objects.filter(**{field: value for field, value in exact.items() if value})
    if wanted.since is not None:
        changes = changes.filter(at__gte=wanted.since)
    if wanted.until is not None:
        changes = changes.filter(at__lte=wanted.until)
    return changes.filter(name__icontains=wanted.name) if wanted.name else changes


def list_differences(before: Mapping[str, object], after: Mapping[str, object]) -> list[Difference]:
    """The fields that differ."""
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
    """A bulk change keeps tool ids by value; a page shows how many."""
    if not isinstance(value, dict):
        return value
    return ", ".join(
        f"{kept} ({len(ids):,})" if isinstance(ids, list) else f"{kept} {ids}" for kept, ids in value.items()
    )


def _row(change: Change) -> ChangeRow:
    """An import of many servers has a line for each of the first. Of what else was created or deleted, only
    the fields that say something.
    """
    many = change.after.get("servers")
    if isinstance(many, dict):
        shown = list_differences({}, many)
        left = f"and {len(shown) - SHOWN_OF_MANY:,} more"
        more = [Difference(left, None, "", False, False)] if len(shown) > SHOWN_OF_MANY else []
        return ChangeRow(change=change, differences=[*shown[:SHOWN_OF_MANY], *more])
    differences = list_differences(change.before, change.after)
    if change.action != Action.CHANGED:
        told: tuple[object, ...] = (None, "", [], change.name)
        differences = [each for each in differences if each.before not in told or each.after not in told]
    return ChangeRow(change=change, differences=differences)
