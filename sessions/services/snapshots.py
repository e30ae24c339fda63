"""Snapshots: stores and restores a session's loaded tools, search tool and deferral state."""

from dataclasses import dataclass

from django.db import transaction
from django.db.models import TextField
from django.db.models.functions import Cast, Length

from catalog.domain.errors import NotFound
from catalog.domain.limits import SNAPSHOTS_OF_A_SESSION, SNAPSHOTS_OF_A_SESSION_BYTES
from catalog.domain.policy import Policy as DomainPolicy
from catalog.selectors.changes import find_named_since
from sessions.domain.loaded import Loaded, LoadedTools
from sessions.models import AgentSession, EventKind, Snapshot, SnapshotCause
from sessions.offers import offer_cache
from sessions.offers.offer import Offer
from sessions.offers.states import read_loaded
from sessions.services import eviction, write_behind
from sessions.services.events import Cause, PendingEvent
from sessions.services.session_changes import edit_session, lock_session


@dataclass(frozen=True, slots=True)
class RestoredSession:
    session: AgentSession
    lost: tuple[str, ...]  # tools of the snapshot that no longer exist


def take_snapshot(*, session: AgentSession) -> Snapshot:
    """Keep what the session has now. Of a session's snapshots the oldest go when there are too many."""
    offer = offer_cache.offer_of_session(session)
    with transaction.atomic():
        row, present, snapshot = _keep(session, offer, SnapshotCause.REQUEST)
        taken = Cause(EventKind.SNAPSHOT, snapshot_turn=row.turn)
        write_behind.enqueue_event(PendingEvent(taken, row, present, present))
    _make_room(row, present)
    return snapshot


def compact(*, session: AgentSession) -> AgentSession:
    """The conversation was compacted: keep a snapshot, and the loaded tools where the policy says so."""
    offer = offer_cache.offer_of_session(session)

    def edit(_row: AgentSession, policy: DomainPolicy, before: LoadedTools) -> LoadedTools:
        return before if policy.keep_on_compaction else ()

    with transaction.atomic():
        row, present, snapshot = _keep(session, offer, SnapshotCause.COMPACTION)
        cause = Cause(EventKind.COMPACTED, snapshot_turn=snapshot.turn)
        changed = edit_session(session_id=session.pk, cause=cause, edit=edit)
    _make_room(row, present)
    return changed


def restore(*, session: AgentSession, snapshot_id: int) -> RestoredSession:
    """Bring back what a snapshot holds, as far as it still exists.

    A snapshot holds names: a tool that may have got such a name since counts as another tool.
    """
    snapshot = session.snapshots.filter(pk=snapshot_id).first()
    if snapshot is None:
        raise NotFound("There is no such snapshot of this session.")
    offer = offer_cache.offer_of_session(session, for_this_turn=False)
    kept = tuple(Loaded(*row) for row in snapshot.loaded)
    others = find_named_since([tool.name for tool in kept], snapshot.created_at)
    present = tuple(tool for tool in kept if tool.name in offer.by_name and tool.name not in others)

    def edit(row: AgentSession, _policy: DomainPolicy, _before: LoadedTools) -> LoadedTools:
        row.context_used, row.context_was_over = snapshot.context_used, snapshot.context_was_over
        return present

    lost = tuple(tool.name for tool in kept if tool.name not in offer.by_name or tool.name in others)
    cause = Cause(EventKind.RESTORED, snapshot_turn=snapshot.turn)
    changed = edit_session(session_id=session.pk, cause=cause, edit=edit)
    _make_room(changed, present)
    return RestoredSession(changed, lost)


def _keep(
    session: AgentSession, offer: Offer, cause: SnapshotCause
) -> tuple[AgentSession, LoadedTools, Snapshot]:
    """In a transaction; the offer was made before it, since SQLite's one writer is held from here on."""
    row = lock_session(session.pk)
    present = read_loaded(row)
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
    row.snapshot_bytes = _drop_oldest(row)
    row.own_bytes = eviction.measure_own(row, loaded=len(present))
    row.save(update_fields=["snapshot_bytes", "own_bytes"])
    return row, present, snapshot


def _drop_oldest(row: AgentSession) -> int:
    """Past their number or bytes; the newest stays, whatever its size. The bytes of those that stay."""
    sizes = row.snapshots.annotate(size=Length(Cast("loaded", TextField()))).order_by("-pk")
    kept: list[int] = []
    kept_bytes = 0
    for pk, size in sizes.values_list("pk", "size"):
        if kept and (len(kept) == SNAPSHOTS_OF_A_SESSION or kept_bytes + size > SNAPSHOTS_OF_A_SESSION_BYTES):
            row.snapshots.filter(pk__lte=pk).delete()
            break
        kept.append(pk)
        kept_bytes += size
    return kept_bytes


def _make_room(session: AgentSession, present: LoadedTools) -> None:
    if eviction.measure_gathered(session, loaded=len(present)):
        eviction.make_room_for_bytes(session)
