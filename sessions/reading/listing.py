"""A key's own sessions: one of them, or page by page."""

import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta
from enum import StrEnum

from django.db.models import Q
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from catalog.cursors import read_cursor, write_cursor
from catalog.domain.errors import InvalidInput, NotFound
from sessions.models import AgentSession, AgentSessionQuerySet, Snapshot

READ_AT_ONCE = 25
IDLE_AFTER = timedelta(hours=1)


class Liveness(StrEnum):
    """`active` was seen within the hour, `idle` not; `expired` ones are about to be removed."""

    ACTIVE = "active"
    IDLE = "idle"
    EXPIRED = "expired"


def find_session(session_id: uuid.UUID, *, key_id: int) -> AgentSession:
    """Raises NotFound for another key's session as for none at all."""
    session = AgentSession.objects.filter(pk=session_id).order_by().first()
    if session is None or session.key_id != key_id or session.expires_at <= timezone.now():
        raise NotFound("There is no such session.")
    return session


def list_sessions(
    *, key_id: int, liveness: Liveness | None, limit: int, cursor: str | None
) -> Iterator[list[AgentSession]]:
    """The latest created first, a few at a time, for each may bring a megabyte of tools along; without
    `liveness` all that have not expired. Whoever reads them stops after `limit`.
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
