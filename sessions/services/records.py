"""What is written behind an answer's back: searches, what happened to sessions, when they and keys were used.

A request only notes it down; a moment later one transaction writes all that came together in this process.
"""

import atexit
import logging
import uuid
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Lock, Timer

from django.conf import settings
from django.db import DatabaseError, InterfaceError, OperationalError, connection, transaction
from django.utils import timezone

from catalog.models import Policy
from sessions.models import AgentSession, ApiKey, SearchEvent
from sessions.services import activity, events
from sessions.services.events import Happening

KEY_USE_EVERY = timedelta(minutes=1)
MOST_NOTES = 10_000

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Notes:
    searches: list[SearchEvent] = field(default_factory=list)
    happenings: list[Happening] = field(default_factory=list)
    seen: dict[uuid.UUID, datetime] = field(default_factory=dict)
    used: dict[int, datetime] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.searches or self.happenings or self.seen or self.used)


class _Notebook:
    def __init__(self) -> None:
        self._lock = Lock()
        self._notes = _Notes()
        self._timer: Timer | None = None
        self._key_uses: dict[int, datetime] = {}

    def note(
        self,
        *,
        search: SearchEvent | None = None,
        happening: Happening | None = None,
        session_id: uuid.UUID | None = None,
        key_id: int | None = None,
    ) -> None:
        now = timezone.now()
        with self._lock:
            if search is not None and len(self._notes.searches) < MOST_NOTES:
                self._notes.searches.append(search)
            if happening is not None and len(self._notes.happenings) < MOST_NOTES:
                self._notes.happenings.append(happening)
            if session_id is not None:
                self._notes.seen[session_id] = now
            if key_id is not None and self._is_news(key_id, now):
                self._notes.used[key_id] = now
            self._start_timer()

    def take(self) -> _Notes:
        with self._lock:
            notes, self._notes, self._timer = self._notes, _Notes(), None
            return notes

    def give_back(self, notes: _Notes) -> None:
        """What could not be written, before what was noted since."""
        for search in notes.searches:
            search.pk = None  # one from the transaction that failed may be another's now
        with self._lock:
            since, self._notes = self._notes, notes
            notes.searches = (notes.searches + since.searches)[:MOST_NOTES]
            notes.happenings = (notes.happenings + since.happenings)[:MOST_NOTES]
            notes.seen |= since.seen
            notes.used |= since.used
            self._start_timer()

    def forget(self) -> None:
        with self._lock:
            self._notes, self._key_uses = _Notes(), {}

    def _is_news(self, key_id: int, now: datetime) -> bool:
        last = self._key_uses.get(key_id)
        if last is not None and now - last < KEY_USE_EVERY:
            return False
        self._key_uses[key_id] = now
        return True

    def _start_timer(self) -> None:
        if self._timer is None and self._notes and settings.WRITE_BEHIND_SECONDS:
            self._timer = Timer(settings.WRITE_BEHIND_SECONDS, _write_and_close)
            self._timer.daemon = True
            self._timer.start()


_notebook = _Notebook()


def note_search(search: SearchEvent) -> None:
    _notebook.note(search=search)


def note_event(happening: Happening) -> None:
    """Once the change it tells of is committed: a change that is taken back never happened."""
    if happening.is_worth_noting:
        transaction.on_commit(lambda: _notebook.note(happening=happening))


def note_use(*, key_id: int, session_id: uuid.UUID | None = None) -> None:
    """A key was used, and a session seen."""
    _notebook.note(key_id=key_id, session_id=session_id)


def write_notes() -> None:
    """Write what this process has noted so far. A session that went away meanwhile takes its notes along."""
    notes = _notebook.take()
    if not notes:
        return
    try:
        _write(notes)
    except (OperationalError, InterfaceError):  # the database is away, and will be back
        _notebook.give_back(notes)
        raise


def _write(notes: _Notes) -> None:
    measured = events.measure(notes.happenings)
    noted = {search.session_id for search in notes.searches} | {event.session_id for event in measured}
    with transaction.atomic():
        living = _hold({*noted, *notes.seen})
        _write_seen({session_id: at for session_id, at in notes.seen.items() if session_id in living})
        for key_id, at in notes.used.items():
            ApiKey.objects.filter(pk=key_id).update(last_used_at=at)
        searches = [search for search in notes.searches if search.session_id in living]
        events.write_searches(searches)
        events.write([event for event in measured if event.session_id in living])
        activity.count(events=measured, searches=notes.searches)


def forget() -> None:
    """Forget what has not been written yet."""
    _notebook.forget()


def _hold(session_ids: set[uuid.UUID]) -> set[uuid.UUID]:
    """Those still there, kept from ending until the notes are written; locked in one order by all who do."""
    rows = AgentSession.objects.select_for_update(no_key=True).filter(pk__in=session_ids).order_by("pk")
    return set(rows.values_list("pk", flat=True))


def _write_seen(seen: dict[uuid.UUID, datetime]) -> None:
    """One statement for each policy: its sessions live on for the same time."""
    if not seen:
        return
    latest = max(seen.values())
    ids = list(seen)
    for policy in Policy.objects.filter(agent_sessions__in=ids).distinct().only("session_ttl"):
        AgentSession.objects.filter(pk__in=ids, policy=policy).update(
            last_seen_at=latest, expires_at=latest + policy.session_ttl
        )


def _write_and_close() -> None:
    """On a thread of its own, with a connection of its own; and when the process ends."""
    if not settings.WRITE_BEHIND_SECONDS:
        return
    try:
        write_notes()
    except DatabaseError:
        logger.exception("searches, events and last uses could not be recorded now")
    finally:
        connection.close()


atexit.register(_write_and_close)
