"""Stores the tools that a server lists, beside an admin's settings.

In two steps: `prepare_listing` does the slow work without locks, `store_listing` writes what differs.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from django.db.models import Max

from catalog.domain import approvals, names
from catalog.domain.choices import Approval, Kind
from catalog.domain.definitions import Definition
from catalog.models import CatalogVersion, Policy, Server, Tool, ToolRevision
from catalog.models.tools import ToolQuerySet
from catalog.services.batches import batches
from catalog.services.catalog_lock import lock_catalog
from catalog.services.marks import look_over
from catalog.services.prepared_rows import Columns, RowValues

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
_CONTENT = Columns(Tool, (*DEFINITION_FIELDS, "marks", "mark_count", "digest", "chars"))
_CHANGED = Columns(Tool, (*_CONTENT.names, "changed_at", "approval"))
_NEW = Columns(
    Tool,
    (
        *(*_CONTENT.names, "name", "baseline_digest"),
        *("server", "qualified_name", "first_seen_at", "changed_at"),
    ),
)
_NAMED = Columns(Tool, ("qualified_name",))
_NOW = Columns(Tool, ("changed_at",))
_FORM = Columns(ToolRevision, ("digest", "definition", "chars"))
_REVISION = Columns(ToolRevision, (*_FORM.names, "tool", "number", "seen_at"))


@dataclass(frozen=True, slots=True)
class Stored:
    """Ids of the tools that a listing changed. A tool that came back counts as added."""

    added: tuple[int, ...]
    changed: tuple[int, ...]
    gone: tuple[int, ...]
    unchanged_count: int

    @property
    def touched(self) -> tuple[int, ...]:
        return self.added + self.changed + self.gone


class PreparedDefinition:
    """A definition with the values of its rows, converted for the database."""

    def __init__(self, definition: Definition, *, is_masked: bool) -> None:
        self._definition = definition
        self._is_masked = is_masked
        self.name = definition.name
        self.digest = definition.digest
        self._chars = definition.size.chars

    @cached_property
    def content(self) -> RowValues:
        """Values of the tool's row, marks included, which take longest to compute."""
        own = (getattr(self._definition, field) for field in DEFINITION_FIELDS)
        marked = look_over(self._definition, is_masked=self._is_masked)
        return _CONTENT.prepare((*own, marked["marks"], marked["mark_count"], self.digest, self._chars))

    @cached_property
    def form(self) -> RowValues:
        """Values of the revision's row."""
        return _FORM.prepare((self.digest, self._definition.to_wire(), self._chars))

    def complete(self) -> None:
        """Compute everything now."""
        _ = self.content, self.form


@dataclass(frozen=True, slots=True)
class PreparedListing:
    """The definitions by name, and qualified names for the new ones, made with the server's kind at that
    time.
    """

    kind: Kind
    definitions: Mapping[str, PreparedDefinition]
    qualified_names: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Known:
    """The stored fields of a tool that decide what a listing changes."""

    id: int
    digest: str
    is_gone: bool
    baseline_digest: str
    is_approved: bool

    def judge(self, digest: str) -> Approval:
        return approvals.approval_after(
            digest=digest, baseline=self.baseline_digest, is_approved=self.is_approved
        )


def store_definitions(*, server: Server, definitions: Sequence[Definition], now: datetime) -> Stored:
    """Prepare a listing and store it."""
    prepared = prepare_listing(server=server, definitions=definitions)
    return store_listing(server=server, listing=prepared, now=now)


def prepare_listing(
    *, server: Server, definitions: Iterable[Definition], masked: Container[str] = ()
) -> PreparedListing:
    """Digest, mark and name what is new or changed. Slow: call it outside of a transaction.

    `masked` are the names of definitions in which secrets were masked. The server need not be stored yet.
    Concurrent changes only cost `store_listing` some of the time saved here.
    """
    listed = {one.name: PreparedDefinition(one, is_masked=one.name in masked) for one in definitions}
    known = _read_known(server)
    for name, prepared in listed.items():
        if name not in known or known[name].digest != prepared.digest:
            prepared.complete()
    qualified = _name_tools(server, [name for name in listed if name not in known])
    return PreparedListing(Kind(server.kind), listed, qualified)


@lock_catalog()
def store_listing(*, server: Server, listing: PreparedListing, now: datetime) -> Stored:
    """Make the server's tools equal the listing, in one transaction; a reader sees all of it or none.

    A tool that is no longer listed is marked gone, not deleted. Admin settings are left as they are.
    An unchanged definition writes nothing.
    """
    known = _read_known(server)
    listed = listing.definitions
    new = [prepared for name, prepared in listed.items() if name not in known]
    seen = [(known[name], prepared) for name, prepared in listed.items() if name in known]
    changed = [(tool, prepared) for tool, prepared in seen if tool.digest != prepared.digest]
    gone = [tool.id for name, tool in known.items() if name not in listed and not tool.is_gone]
    back = {tool.id for tool, _ in seen if tool.is_gone}

    added = _create_tools(server, new, listing, now)
    _change_tools(changed, now)
    _update(gone, gone_at=now)
    _update(list(back), gone_at=None)
    changed_ids = tuple(tool.id for tool, _ in changed if tool.id not in back)
    stored = Stored(
        added=(*added, *back),
        changed=changed_ids,
        gone=tuple(gone),
        unchanged_count=len(seen) - len(back) - len(changed_ids),
    )
    mark_changed(stored.touched)
    return stored


def mark_changed(tool_ids: Sequence[int]) -> None:
    """Give tools the catalog's next version, so that index and decisions follow."""
    if not tool_ids:
        return
    version = CatalogVersion.advance()
    _update(tool_ids, version=version, facts_version=version)


def mark_facts_changed(tools: ToolQuerySet) -> None:
    """Give tools a new version for the decisions only: their settings or their server's have changed."""
    tools.update(facts_version=CatalogVersion.advance())


def rename_tools(server: Server) -> dict[str, str]:
    """Rename a server's tools, gone ones included, for its kind. Returns new names by old ones."""
    rows = Tool.objects.filter(server_id=server.pk).order_by().values_list("name", "pk", "qualified_name")
    known = {name: (tool_id, qualified) for name, tool_id, qualified in rows}
    given = _name_tools(server, list(known))
    _NAMED.update((tool_id, (given[name],)) for name, (tool_id, _) in known.items())
    mark_changed([tool_id for tool_id, _ in known.values()])
    return {qualified: given[name] for name, (_, qualified) in known.items()}


def _update(tool_ids: Sequence[int], **values: object) -> None:
    for batch in batches(tool_ids, BATCH_ROWS):
        Tool.objects.filter(pk__in=batch).update(**values)


def _read_known(server: Server) -> dict[str, _Known]:
    rows = Tool.objects.filter(server_id=server.pk).order_by()
    columns = ("name", "pk", "digest", "gone_at", "baseline_digest", "approved_at")
    return {
        name: _Known(tool_id, digest, gone_at is not None, baseline, approved_at is not None)
        for name, tool_id, digest, gone_at, baseline, approved_at in rows.values_list(*columns)
    }


def _create_tools(
    server: Server, new: Sequence[PreparedDefinition], listing: PreparedListing, now: datetime
) -> list[int]:
    if not new:
        return []
    qualified = _confirm_names(server, [prepared.name for prepared in new], listing)
    [now_stored] = _NOW.prepare((now,))
    _NEW.insert(
        [
            (*one.content, one.name, one.digest, server.pk, qualified[one.name], now_stored, now_stored)
            for one in new
        ]
    )
    ids = {name: known.id for name, known in _read_known(server).items()}
    added = [ids[prepared.name] for prepared in new]
    _create_revisions(((tool_id, 1, one) for tool_id, one in zip(added, new, strict=True)), now)
    return added


def _change_tools(changed: Sequence[tuple[_Known, PreparedDefinition]], now: datetime) -> None:
    [changed_at] = _NOW.prepare((now,))
    _CHANGED.update(
        (tool.id, (*one.content, changed_at, tool.judge(one.digest).value)) for tool, one in changed
    )
    latest = _read_latest_numbers([tool.id for tool, _ in changed])
    _create_revisions(((tool.id, latest.get(tool.id, 0) + 1, one) for tool, one in changed), now)


def _read_latest_numbers(tool_ids: Sequence[int]) -> dict[int, int]:
    latest: dict[int, int] = {}
    for batch in batches(tool_ids, BATCH_ROWS):
        revisions = ToolRevision.objects.filter(tool__in=batch).order_by()
        latest.update(revisions.values_list("tool").annotate(Max("number")))
    return latest


def _create_revisions(rows: Iterable[tuple[int, int, PreparedDefinition]], now: datetime) -> None:
    [seen_at] = _NOW.prepare((now,))
    _REVISION.insert([(*one.form, tool_id, number, seen_at) for tool_id, number, one in rows])


def _confirm_names(server: Server, new: Sequence[str], listing: PreparedListing) -> Mapping[str, str]:
    """The prepared names, or others where one was taken meanwhile or the server's kind has changed."""
    present = Server.objects.only("kind", "name").get(pk=server.pk)
    prepared = listing.qualified_names
    given = {name: prepared[name] for name in new if name in prepared}
    is_of_kind = present.kind == listing.kind
    if is_of_kind and len(given) == len(new) and not _read_taken(list(given.values())):
        return given
    return _name_tools(present, new)


def _name_tools(server: Server, new: Sequence[str]) -> dict[str, str]:
    """Names for new tools; looks up only names that could clash."""
    tool_ids = [names.ToolId(Kind(server.kind), server.name, name) for name in new]
    candidates = [name for tool_id in tool_ids for name in names.candidate_names(tool_id)]
    given = names.name_all(tool_ids, reserved=_read_taken(candidates))
    return {tool_id.tool: name for tool_id, name in given.items()}


def _read_taken(candidates: Sequence[str]) -> set[str]:
    """Which of the names are taken, by any server's tool or a policy's search tool."""
    if not candidates:
        return set()
    search_tools = Policy.objects.values_list("search_tool_name", flat=True).distinct()
    taken = set(search_tools).intersection(candidates)
    for batch in batches(candidates, BATCH_ROWS):
        found = Tool.objects.filter(qualified_name__in=batch).order_by()
        taken.update(found.values_list("qualified_name", flat=True))
    return taken
