"""Stores what a server says its tools are, beside what an admin has set for them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Max

from catalog.domain import approvals, names
from catalog.domain.choices import Kind
from catalog.domain.definitions import Definition
from catalog.models import CatalogVersion, Policy, Server, Tool, ToolRevision
from catalog.models.tools import ToolQuerySet
from catalog.services.batches import batches
from catalog.services.marks import look_over
from catalog.services.writing import catalog_writing

BATCH_ROWS = 500
DEFINITION_FIELDS = (
    "title",
    "description",
    "input_schema",
    "output_schema",
    "annotations",
    "meta",
    "extra",
)
_KNOWN_FIELDS = ("server", "name", "digest", "gone_at", "baseline_digest", "approved_at")


@dataclass(frozen=True, slots=True)
class Stored:
    """Ids of the tools a listing touched. A tool that came back counts as added."""

    added: tuple[int, ...]
    changed: tuple[int, ...]
    gone: tuple[int, ...]
    unchanged_count: int

    @property
    def touched(self) -> tuple[int, ...]:
        return self.added + self.changed + self.gone


@catalog_writing()
def store_definitions(*, server: Server, definitions: Sequence[Definition], now: datetime) -> Stored:
    """Make the server's tools equal the listing, in one transaction; a reader sees all of it or none.

    A tool that is no longer listed is marked gone, not deleted. Admin settings are left as they are.
    An unchanged definition writes nothing.
    """
    known = {tool.name: tool for tool in server.tools.only(*_KNOWN_FIELDS)}
    listed = {definition.name: definition for definition in definitions}
    new = [definition for name, definition in listed.items() if name not in known]
    seen = [(known[name], definition) for name, definition in listed.items() if name in known]
    changed = [(tool, definition) for tool, definition in seen if tool.digest != definition.digest]
    gone = [tool.pk for name, tool in known.items() if name not in listed and tool.gone_at is None]
    back = {tool.pk for tool, _ in seen if tool.gone_at is not None}

    added = _create_tools(server, new, now)
    _change_tools(changed, now)
    _update(gone, gone_at=now)
    _update(list(back), gone_at=None)
    changed_ids = tuple(tool.pk for tool, _ in changed if tool.pk not in back)
    stored = Stored(
        added=(*added, *back),
        changed=changed_ids,
        gone=tuple(gone),
        unchanged_count=len(seen) - len(back) - len(changed_ids),
    )
    mark_changed(stored.touched)
    return stored


def mark_changed(tool_ids: Sequence[int]) -> None:
    """Give tools the catalog's next version: index and decisions have to catch up with them."""
    if not tool_ids:
        return
    version = CatalogVersion.advance()
    _update(tool_ids, version=version, facts_version=version)


def mark_facts_changed(tools: ToolQuerySet) -> None:
    """The same for what only the decisions look at: settings of a tool or its server."""
    tools.update(facts_version=CatalogVersion.advance())


def _update(tool_ids: Sequence[int], **values: object) -> None:
    for batch in batches(tool_ids, BATCH_ROWS):
        Tool.objects.filter(pk__in=batch).update(**values)


def _create_tools(server: Server, definitions: Sequence[Definition], now: datetime) -> list[int]:
    if not definitions:
        return []
    qualified = _name_tools(server, definitions)
    tools = [
        Tool(
            server=server,
            name=definition.name,
            qualified_name=qualified[definition.name],
            digest=definition.digest,
            chars=definition.size.chars,
            baseline_digest=definition.digest,
            first_seen_at=now,
            changed_at=now,
            **_definition_values(definition),
        )
        for definition in definitions
    ]
    created = Tool.objects.bulk_create(tools, batch_size=BATCH_ROWS)
    _create_revisions(
        ((tool, definition, 1) for tool, definition in zip(created, definitions, strict=True)), now
    )
    return [tool.pk for tool in created]


def _change_tools(changed: Sequence[tuple[Tool, Definition]], now: datetime) -> None:
    tool_ids = [tool.pk for tool, _ in changed]
    latest = dict(
        ToolRevision.objects.filter(tool__in=tool_ids).values_list("tool").annotate(Max("number")).order_by()
    )
    for tool, definition in changed:
        tool.digest, tool.chars, tool.changed_at = definition.digest, definition.size.chars, now
        tool.approval = approvals.judge(
            digest=tool.digest, baseline=tool.baseline_digest, is_approved=tool.approved_at is not None
        )
        for field, value in _definition_values(definition).items():
            setattr(tool, field, value)
    fields = [*DEFINITION_FIELDS, "marks", "mark_count", "digest", "chars", "changed_at", "approval"]
    Tool.objects.bulk_update([tool for tool, _ in changed], fields, batch_size=BATCH_ROWS)
    _create_revisions(((tool, definition, latest[tool.pk] + 1) for tool, definition in changed), now)


def _create_revisions(rows: Iterable[tuple[Tool, Definition, int]], now: datetime) -> None:
    ToolRevision.objects.bulk_create(
        (
            ToolRevision(
                tool=tool,
                number=number,
                digest=definition.digest,
                definition=definition.to_wire(),
                chars=definition.size.chars,
                seen_at=now,
            )
            for tool, definition, number in rows
        ),
        batch_size=BATCH_ROWS,
    )


def _definition_values(definition: Definition) -> dict[str, object]:
    return {**{field: getattr(definition, field) for field in DEFINITION_FIELDS}, **look_over(definition)}


def _name_tools(server: Server, definitions: Sequence[Definition]) -> dict[str, str]:
    """Names for new tools; only the names that could clash are looked up, not the whole catalog."""
    kind = Kind(server.kind)
    tool_ids = [names.ToolId(kind, server.name, definition.name) for definition in definitions]
    candidates = [name for tool_id in tool_ids for name in names.candidate_names(tool_id)]
    taken: set[str] = set()
    for batch in batches(candidates, BATCH_ROWS):
        found = Tool.objects.filter(qualified_name__in=batch)
        taken.update(found.values_list("qualified_name", flat=True))
    search_tools = Policy.objects.values_list("search_tool_name", flat=True).distinct()
    given = names.name_all(tool_ids, reserved={*taken, *search_tools})
    return {tool_id.tool: name for tool_id, name in given.items()}
