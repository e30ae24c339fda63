"""Snapshots: the loaded tools, the search tool and the deferral state, kept and brought back."""

from dataclasses import dataclass

from django.db import transaction

from catalog.domain.errors import NotFound
from catalog.domain.policy import Policy as DomainPolicy
from catalog.selectors.changes import find_named_since
from sessions.domain.loaded import Loaded, LoadedTools
from sessions.models import AgentSession, EventKind, Snapshot, SnapshotCause
from sessions.reading import offers
from sessions.reading.states import read_loaded
from sessions.services import records
from sessions.services.changing import change_session, hold
from sessions.services.events import Cause, happen

KEPT_SNAPSHOTS = 100


@dataclass(frozen=True, slots=True)
class Restored:
    session: AgentSession
    lost: tuple[str, ...]  # tools of the snapshot that no longer exist


@transaction.atomic
def take_snapshot(*, session: AgentSession, cause: SnapshotCause = SnapshotCause.REQUEST) -> Snapshot:
    """Keep what the session has now. Of a session's snapshots the oldest go when there are too many."""
    row = hold(session.pk)
    offer, present = offers.offer_of_session(row), read_loaded(row)
    snapshot = Snapshot.objects.create(
        session=row,
        cause=cause,
        turn=row.turn,
        loaded=[[tool.name, tool.loaded_turn, tool.used_turn, tool.used_order] for tool in present],
        search_tool_name=offer.policy.search_tool_name,
        was_active=offer.is_active,
        context_used=row.context_used,
        context_was_over=row.context_was_over,
    )
    old = row.snapshots.order_by("-pk").values_list("pk", flat=True)[KEPT_SNAPSHOTS:]
    Snapshot.objects.filter(pk__in=list(old)).delete()
    if cause is SnapshotCause.REQUEST:  # of a compaction its own event tells
        records.note_event(happen(Cause(EventKind.SNAPSHOT, snapshot_turn=row.turn), row, present, present))
    return snapshot


@transaction.atomic
def compact(*, session: AgentSession) -> AgentSession:
    """The conversation was compacted: keep a snapshot, and the loaded tools where the policy says so."""
    snapshot = take_snapshot(session=session, cause=SnapshotCause.COMPACTION)

    def edit(_row: AgentSession, policy: DomainPolicy, before: LoadedTools) -> LoadedTools:
        return before if policy.keep_on_compaction else ()

    cause = Cause(EventKind.COMPACTED, snapshot_turn=snapshot.turn)
    return change_session(session_id=session.pk, cause=cause, edit=edit)


@transaction.atomic
def restore(*, session: AgentSession, snapshot_id: int) -> Restored:
    """Bring back what a snapshot kept, as far as it still exists.

    A snapshot keeps names: a tool that may have got one of them since counts as another one.
    """
    snapshot = session.snapshots.filter(pk=snapshot_id).first()
    if snapshot is None:
        raise NotFound("There is no such snapshot of this session.")
    offer = offers.offer_of_session(session, for_this_turn=False)
    kept = tuple(Loaded(*row) for row in snapshot.loaded)
    others = find_named_since([tool.name for tool in kept], snapshot.created_at)
    present = tuple(tool for tool in kept if tool.name in offer.by_name and tool.name not in others)

    def edit(row: AgentSession, _policy: DomainPolicy, _before: LoadedTools) -> LoadedTools:
        row.context_used, row.context_was_over = snapshot.context_used, snapshot.context_was_over
        return present

    lost = tuple(tool.name for tool in kept if tool.name not in offer.by_name or tool.name in others)
    cause = Cause(EventKind.RESTORED, snapshot_turn=snapshot.turn)
    return Restored(change_session(session_id=session.pk, cause=cause, edit=edit), lost)
