"""REST calls for agents' sessions."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Query, Router

from catalog.access import key_uses
from catalog.access.callers import ANY_KEY, KeyCheck, caller_of, read_bearer
from catalog.domain.errors import NotFound
from catalog.domain.sizes import compact_json
from catalog.request_bodies import NOTHING, NothingIn
from sessions.api.polling import admit
from sessions.models import AgentSession
from sessions.offers.plain_sessions import OwnSession, find_own_session
from sessions.offers.states import read_session_state
from sessions.schemas import (
    SearchIn,
    SearchOut,
    SessionIn,
    SessionPatchIn,
    StateListOut,
    StateOut,
    TurnIn,
    UnloadIn,
)
from sessions.selectors.own_sessions import Liveness, find_session_of_key, list_sessions, read_states_page
from sessions.services import lifecycle, write_behind
from sessions.services.loading import SearchCall, search_as_read
from sessions.services.search_results import write_result

router = Router(tags=["sessions"], auth=ANY_KEY)


def _find_searched(request: HttpRequest) -> OwnSession:
    """Check a search's key and read its session with it."""
    assert request.resolver_match is not None
    session_id = UUID(request.resolver_match.kwargs["session_id"])  # Ninja leaves the text as it is

    def find(prefix: str) -> OwnSession | None:
        return find_own_session(prefix, session_id, now=timezone.now())

    found = admit(read_bearer(request), find)
    key_uses.enqueue(found.key_id, request.META)
    if found.reading is not None:
        write_behind.enqueue_seen(session_id)
    return found


@router.post(
    "/sessions",
    operation_id="create_session",
    summary="Begin a session",
    response={201: StateOut, 200: StateOut},
)
def create_session(request: HttpRequest, fields: SessionIn) -> HttpResponse:
    """201 with a new session; 200 with the same one when this key has used the `external_id` before."""
    caller = caller_of(request)
    given = {name: value for name, value in fields.given().items() if value is not None}
    created = lifecycle.create_session(
        key_id=caller.key_id,
        policy=caller.use_policy(fields.policy),
        fields=lifecycle.SessionFields(**given),
        external_id=fields.external_id,
    )
    return answer_state(created.session, status=201 if created.is_new else 200)


@router.get("/sessions", operation_id="list_sessions", summary="This key's sessions", response=StateListOut)
def get_sessions(
    request: HttpRequest,
    state: Liveness | None = None,
    limit: int = Query(50, ge=1, le=200),  # type: ignore[type-arg]
    cursor: str | None = None,
) -> HttpResponse:
    """The latest created first."""
    batches = list_sessions(key_id=caller_of(request).key_id, liveness=state, limit=limit, cursor=cursor)
    page = read_states_page(batches, limit=limit)
    return send_json({"items": page.items, "next": page.next})


@router.get(
    "/sessions/{uuid:session_id}", operation_id="get_session", summary="A session's state", response=StateOut
)
def get_session(request: HttpRequest, session_id: UUID) -> HttpResponse:
    return answer_state(own_session(request, session_id))


@router.patch(
    "/sessions/{uuid:session_id}",
    operation_id="change_session",
    summary="Change a session",
    response=StateOut,
)
def change_session(request: HttpRequest, session_id: UUID, fields: SessionPatchIn) -> HttpResponse:
    """Fields that are left out stay; null takes a value back."""
    session = own_session(request, session_id)
    return answer_state(lifecycle.change_fields(session=session, changed=fields.given()))


@router.delete(
    "/sessions/{uuid:session_id}",
    operation_id="delete_session",
    summary="End a session",
    response={204: None},
)
def delete_session(request: HttpRequest, session_id: UUID) -> HttpResponse:
    lifecycle.delete_session(session=own_session(request, session_id))
    return HttpResponse(status=204)


@router.post(
    "/sessions/{uuid:session_id}/search",
    operation_id="search",
    summary="Find tools and load them",
    response=SearchOut,
    auth=KeyCheck(find=_find_searched),
)
def search(request: HttpRequest, session_id: UUID, call: SearchIn) -> HttpResponse:
    """What matches is loaded at once unless `load` is false."""
    found: OwnSession = request.auth  # type: ignore[attr-defined]
    if found.reading is None:
        raise NotFound("There is no such session.")
    asked = SearchCall(
        query=call.query,
        pattern=call.pattern,
        max_results=call.max_results,
        load=call.load,
        call_id=call.call_id,
    )
    return send_text(write_result(search_as_read(found.reading, call=asked)))


@router.post(
    "/sessions/{uuid:session_id}/turns", operation_id="end_turn", summary="End a turn", response=StateOut
)
def end_turn(request: HttpRequest, session_id: UUID, turn: TurnIn) -> HttpResponse:
    """Tools are unloaded by the policy's rules; what was called counts as used."""
    session = own_session(request, session_id)
    ended = lifecycle.end_turn(
        session=session, context_used=turn.context_used, called=turn.called, visible=turn.visible
    )
    return answer_state(ended)


@router.post(
    "/sessions/{uuid:session_id}/unload",
    operation_id="unload_tools",
    summary="Unload tools",
    response=StateOut,
)
def unload(request: HttpRequest, session_id: UUID, wanted: UnloadIn) -> HttpResponse:
    """By qualified or bare name. A tool that a rule loads stays."""
    session = own_session(request, session_id)
    return answer_state(lifecycle.unload(session=session, names=wanted.names))


@router.post(
    "/sessions/{uuid:session_id}/reset", operation_id="reset_session", summary="Begin anew", response=StateOut
)
def reset(request: HttpRequest, session_id: UUID, nothing: NothingIn = NOTHING) -> HttpResponse:
    """Every tool is decided again, and what was loaded is dropped."""
    return answer_state(lifecycle.reset(session=own_session(request, session_id)))


def own_session(request: HttpRequest, session_id: UUID) -> AgentSession:
    """The caller's session; another key's is not found."""
    session = find_session_of_key(session_id, key_id=caller_of(request).key_id)
    write_behind.enqueue_seen(session_id)
    return session


def answer_state(session: AgentSession, *, status: int = 200) -> HttpResponse:
    return send_json(read_session_state(session).to_mapping(), status=status)


def send_json(value: object, *, status: int = 200) -> HttpResponse:
    """Sends the services' plain JSON as it is, without validating every field again."""
    return send_text(compact_json(value), status=status)


def send_text(text: str, *, status: int = 200) -> HttpResponse:
    """JSON that is written already."""
    return HttpResponse(text.encode("utf-8", "replace"), status=status, content_type="application/json")
