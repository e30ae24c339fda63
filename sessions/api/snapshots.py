"""REST calls for snapshots of a session."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Router, Status

from catalog.access.callers import ANY_KEY
from catalog.request_bodies import NOTHING, NothingIn
from sessions.api.sessions import answer_state, own_session, send_json
from sessions.models import Snapshot
from sessions.offers.states import read_session_state
from sessions.schemas import RestoredOut, RestoreIn, SnapshotListOut, SnapshotOut, StateOut
from sessions.selectors.own_sessions import list_snapshots
from sessions.services import snapshots

router = Router(tags=["sessions"], auth=ANY_KEY)


@router.post(
    "/sessions/{uuid:session_id}/compact",
    operation_id="compact_session",
    summary="The conversation was compacted",
    response=StateOut,
)
def compact(request: HttpRequest, session_id: UUID, nothing: NothingIn = NOTHING) -> HttpResponse:
    """Takes a snapshot, and keeps the loaded tools where the policy says so."""
    return answer_state(snapshots.compact(session=own_session(request, session_id)))


@router.post(
    "/sessions/{uuid:session_id}/snapshots",
    operation_id="take_snapshot",
    summary="Take a snapshot",
    response={201: SnapshotOut},
)
def take(request: HttpRequest, session_id: UUID, nothing: NothingIn = NOTHING) -> Status[SnapshotOut]:
    return Status(201, _describe(snapshots.take_snapshot(session=own_session(request, session_id))))


@router.get(
    "/sessions/{uuid:session_id}/snapshots",
    operation_id="list_snapshots",
    summary="A session's snapshots",
    response=SnapshotListOut,
)
def get_snapshots(request: HttpRequest, session_id: UUID) -> SnapshotListOut:
    """The latest first."""
    found = list_snapshots(own_session(request, session_id))
    return SnapshotListOut(items=[_describe(snapshot) for snapshot in found], next=None)


@router.post(
    "/sessions/{uuid:session_id}/restore",
    operation_id="restore_snapshot",
    summary="Bring a snapshot back",
    response=RestoredOut,
)
def restore(request: HttpRequest, session_id: UUID, wanted: RestoreIn) -> HttpResponse:
    """`lost` names the tools of the snapshot that no longer exist."""
    session = own_session(request, session_id)
    restored = snapshots.restore(session=session, snapshot_id=wanted.snapshot)
    return send_json(read_session_state(restored.session, lost=restored.lost).to_mapping())


def _describe(snapshot: Snapshot) -> SnapshotOut:
    return SnapshotOut(
        id=snapshot.pk,
        cause=snapshot.cause,
        turn=snapshot.turn,
        loaded=[name for name, *_ in snapshot.loaded],
        search_tool=snapshot.search_tool_name,
        active=snapshot.was_active,
        context_used=snapshot.context_used,
        created_at=snapshot.created_at,
    )
