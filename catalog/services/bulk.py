"""Changes settings and tags of many tools at once: one transaction, few queries, one record that can be
undone.

A record's `before` and `after` hold, field by field, the ids of the tools by their value. Only tools that
change are in it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from catalog.access import actors
from catalog.access.roles import Role
from catalog.domain.choices import Loading, ReadOnly
from catalog.models import Change, Tool, ToolTag
from catalog.models.changes import Action, Subject
from catalog.services import changes, decisions
from catalog.services.batches import batches
from catalog.services.catalog_lock import lock_catalog
from catalog.services.tags import clean_tags
from catalog.services.tools import mark_facts_changed

BATCH_IDS = 2000
YES, NO = "yes", "no"
LOADING, HIDDEN, READ_ONLY, TAG = "loading", "hidden", "read_only", "tag "

# Ids of tools by the value a field of theirs has or gets.
IdsByValue = Mapping[str, Sequence[int]]


@dataclass(frozen=True, slots=True)
class BulkEdit:
    """The values to set on every tool; None leaves a field as it is."""

    loading: Loading | None = None
    hidden: bool | None = None
    add_tags: tuple[str, ...] = ()
    remove_tags: tuple[str, ...] = ()
    read_only: ReadOnly | None = None

    @property
    def is_empty(self) -> bool:
        return self == BulkEdit()

    @property
    def flips_tools(self) -> bool:
        """False for tags and marks, which decide nothing."""
        return self.loading is not None or self.hidden is not None


@lock_catalog()
def change_tools(*, tool_ids: Sequence[int], edit: BulkEdit, actor: actors.Actor) -> Change | None:
    """None where no tool changes. Raises InvalidInput for an invalid tag."""
    actors.require(actor, Role.EDITOR if edit.read_only is None else Role.ADMIN)
    wanted = {field: {value: tool_ids} for field, value in _fields_of(edit).items()}
    return _assign(wanted, actor)


@lock_catalog()
def restore_tools(*, change: Change, actor: actors.Actor) -> Change | None:
    """Undo a bulk change, except on tools that were changed since."""
    actors.require(actor, Role.ADMIN if READ_ONLY in change.before else Role.EDITOR)
    wanted: dict[str, IdsByValue] = {}
    for field, values in change.before.items():
        set_then = {tool_id: value for value, ids in change.after[field].items() for tool_id in ids}
        present = _read(field, list(set_then))
        kept = {tool_id for tool_id, value in present.items() if value == set_then[tool_id]}
        wanted[field] = {value: [one for one in ids if one in kept] for value, ids in values.items()}
    return _assign(wanted, actor)


def is_bulk(change: Change) -> bool:
    return change.subject == Subject.TOOL and all(isinstance(value, dict) for value in change.before.values())


def _fields_of(edit: BulkEdit) -> dict[str, str]:
    fields = {TAG + tag: YES for tag in clean_tags(edit.add_tags)}
    fields |= {TAG + tag: NO for tag in clean_tags(edit.remove_tags)}
    if edit.loading is not None:
        fields[LOADING] = str(edit.loading)
    if edit.hidden is not None:
        fields[HIDDEN] = YES if edit.hidden else NO
    if edit.read_only is not None:
        fields[READ_ONLY] = str(edit.read_only)
    return fields


def _assign(wanted: Mapping[str, IdsByValue], actor: actors.Actor) -> Change | None:
    before: dict[str, dict[str, list[int]]] = {}
    after: dict[str, dict[str, list[int]]] = {}
    for field, values in wanted.items():
        for value, ids in values.items():
            _assign_one(field, value, ids, before, after)
    touched = {tool_id for values in after.values() for ids in values.values() for tool_id in ids}
    if not touched:
        return None
    if not after.keys().isdisjoint((LOADING, HIDDEN, READ_ONLY)):
        for batch in batches(sorted(touched), BATCH_IDS):
            mark_facts_changed(Tool.objects.filter(pk__in=batch))
        decisions.request_decisions()
    name = f"{len(touched):,} tool{'' if len(touched) == 1 else 's'}"
    return changes.record_change(
        actor=actor, subject=Subject.TOOL, name=name, action=Action.CHANGED, before=before, after=after
    )


def _assign_one(
    field: str,
    value: str,
    ids: Sequence[int],
    before: dict[str, dict[str, list[int]]],
    after: dict[str, dict[str, list[int]]],
) -> None:
    differing = {tool_id: old for tool_id, old in _read(field, ids).items() if old != value}
    if not differing:
        return
    _write(field, value, differing)
    after.setdefault(field, {})[value] = sorted(differing)
    for tool_id, old in sorted(differing.items()):
        before.setdefault(field, {}).setdefault(old, []).append(tool_id)


def _read(field: str, ids: Iterable[int]) -> dict[int, str]:
    """The field's value by id, of existing tools."""
    found: dict[int, str] = {}
    for batch in batches(sorted(ids), BATCH_IDS):
        rows = Tool.objects.filter(pk__in=batch)
        if field == LOADING:
            found |= dict(rows.values_list("pk", "loading"))
        elif field == HIDDEN:
            found |= {pk: YES if hidden else NO for pk, hidden in rows.values_list("pk", "hidden")}
        elif field == READ_ONLY:
            marks = rows.values_list("pk", "read_only")
            found |= {pk: str(ReadOnly.of(mark)) for pk, mark in marks}
        else:
            found |= dict.fromkeys(rows.values_list("pk", flat=True), NO)
            tagged = ToolTag.objects.filter(tool__in=batch, name=field.removeprefix(TAG))
            found |= dict.fromkeys(tagged.values_list("tool_id", flat=True), YES)
    return found


def _write(field: str, value: str, ids: Iterable[int]) -> None:
    tag = field.removeprefix(TAG)
    for batch in batches(sorted(ids), BATCH_IDS):
        rows = Tool.objects.filter(pk__in=batch)
        if field == LOADING:
            rows.update(loading=value)
        elif field == HIDDEN:
            rows.update(hidden=value == YES)
        elif field == READ_ONLY:
            rows.update(read_only=ReadOnly(value).mark)
        elif value == YES:
            ToolTag.objects.bulk_create(ToolTag(tool_id=tool_id, name=tag) for tool_id in batch)
        else:
            ToolTag.objects.filter(tool__in=batch, name=tag).delete()
