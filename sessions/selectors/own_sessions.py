"""A key's own sessions: one, or a page of them."""

import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.db.models import Q
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from catalog.console.cursors import read_cursor, write_cursor
from catalog.domain.errors import InvalidInput, NotFound
from sessions.domain.loaded import Loaded
from sessions.models import AgentSession, AgentSessionQuerySet, LoadedTool, Snapshot
from sessions.offers.states import SessionState, resolve_tools
from sessions.offers.versions import Versions, read_versions

READ_AT_ONCE = 25
IDLE_AFTER = timedelta(hours=1)
# A page of states ends early past either: loaded tools make it long, and what a session sees of its own is
# decided for it alone.
PAGE_LOADED_TOOLS = 50_000
PAGE_OWN_TOOLS = 500_000


class Liveness(StrEnum):
    """`active` was seen within the hour, `idle` was not; `expired` ones are about to be deleted."""

    ACTIVE = "active"
    IDLE = "idle"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class StatePage:
    items: Sequence[Mapping[str, object]]
    next: str | None


def find_session_of_key(session_id: uuid.UUID, *, key_id: int) -> AgentSession:
    """Raises NotFound for another key's session, as for a missing one."""
    session = AgentSession.objects.filter(pk=session_id).order_by().first()
    if session is None or session.key_id != key_id or session.expires_at <= timezone.now():
        raise NotFound("There is no such session.")
    return session


def list_sessions(
    *, key_id: int, liveness: Liveness | None, limit: int, cursor: str | None
) -> Iterator[list[AgentSession]]:
    """The latest created first, in small batches, since each may bring a megabyte of tools along; without
    `liveness` all that have not expired. The caller stops after `limit`.
    """
    now, at_once = timezone.now(), min(READ_AT_ONCE, limit + 1)
    own = AgentSession.objects.filter(key=key_id)
    sessions = own.live(now=now) if liveness is None else of_liveness(own, liveness, now=now)
    while True:
        after = sessions.filter(_after(cursor)) if cursor else sessions
        found = list(after.order_by("-created_at", "-pk")[:at_once])
        yield found
        if len(found) < at_once:
            return
        cursor = cursor_after(found[-1])


def read_states_page(batches: Iterable[Sequence[AgentSession]], *, limit: int) -> StatePage:
    """At most `limit` states, fewer where they are large or slow to make."""
    items: list[Mapping[str, object]] = []
    loaded_tools = own_tools = 0
    last: AgentSession | None = None
    for state in _read_states(batches):
        is_full = len(items) == limit or loaded_tools > PAGE_LOADED_TOOLS or own_tools > PAGE_OWN_TOOLS
        if last is not None and is_full:
            return StatePage(items, cursor_after(last))
        last, offer = state.session, state.resolved.offer
        items.append(state.to_mapping())
        loaded_tools += state.resolved.counts["loaded"]
        own_tools += len(offer.tools) if offer.made_of else 0
    return StatePage(items, None)


def _read_states(batches: Iterable[Sequence[AgentSession]]) -> Iterator[SessionState]:
    """One query per batch for loaded tools, one per policy for versions."""
    versions: dict[int, Versions] = {}
    for sessions in batches:
        loaded: dict[uuid.UUID, list[Loaded]] = defaultdict(list)
        for row in LoadedTool.objects.filter(session__in=sessions).order_by("position"):
            loaded[row.session_id].append(Loaded(row.name, row.loaded_turn, row.used_turn, row.used_order))
        for one in sessions:
            if one.policy_id not in versions:
                versions[one.policy_id] = read_versions(one.policy_id)
            found = tuple(loaded[one.pk])
            yield SessionState(one, resolve_tools(one, found, versions[one.policy_id]), found)


def cursor_after(session: AgentSession) -> str:
    return write_cursor(session.created_at.isoformat(), str(session.pk))


def list_snapshots(session: AgentSession) -> list[Snapshot]:
    """The latest first; a session keeps a bounded number of them."""
    return list(session.snapshots.order_by("-created_at", "-pk"))


def of_liveness(sessions: AgentSessionQuerySet, liveness: Liveness, *, now: datetime) -> AgentSessionQuerySet:
    match liveness:
        case Liveness.EXPIRED:
            return sessions.expired(now=now)
        case Liveness.ACTIVE:
            return sessions.live(now=now).filter(last_seen_at__gt=now - IDLE_AFTER)
        case Liveness.IDLE:
            return sessions.live(now=now).filter(last_seen_at__lte=now - IDLE_AFTER)


def liveness_of(session: AgentSession, *, now: datetime) -> Liveness:
    if session.expires_at <= now:
        return Liveness.EXPIRED
    return Liveness.ACTIVE if session.last_seen_at > now - IDLE_AFTER else Liveness.IDLE


def _after(cursor: str) -> Q:
    moment_text, id_text = read_cursor(cursor, parts=2)
    try:
        created_at, session_id = parse_datetime(moment_text), uuid.UUID(id_text)
    except ValueError:
        created_at, session_id = None, None
    if not isinstance(created_at, datetime) or created_at.tzinfo is None or session_id is None:
        raise InvalidInput.at("query.cursor", "is no cursor of this list")
    return Q(created_at__lt=created_at) | Q(created_at=created_at, pk__lt=session_id)
