"""The write-behind buffer of sessions: searches, events, and when each session was last seen."""

import uuid
from dataclasses import dataclass, field
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from catalog.models import Policy
from catalog.process_memory import remember
from catalog.write_behind import WriteBehindBuffer
from sessions.models import AgentSession
from sessions.services import activity, events
from sessions.services.events import PendingEvent, PendingSearch

MOST_ENQUEUED = 10_000


@dataclass(slots=True)
class Batch:
    searches: list[PendingSearch] = field(default_factory=list)
    events: list[PendingEvent] = field(default_factory=list)
    seen: dict[uuid.UUID, datetime] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.searches or self.events or self.seen)


class EventBuffer(WriteBehindBuffer[Batch]):
    """Past `MOST_ENQUEUED` of a kind, what comes is dropped."""

    def __init__(self) -> None:
        super().__init__("searches, events and last uses of sessions")

    def enqueue_search(self, search: PendingSearch) -> None:
        with self._lock:
            if len(self._batch.searches) < MOST_ENQUEUED:
                self._batch.searches.append(search)
            self._start_timer()

    def enqueue_event(self, event: PendingEvent) -> None:
        with self._lock:
            if len(self._batch.events) < MOST_ENQUEUED:
                self._batch.events.append(event)
            self._start_timer()

    def enqueue_seen(self, session_id: uuid.UUID) -> None:
        now = timezone.now()
        with self._lock:
            self._batch.seen[session_id] = now
            self._start_timer()

    def _make_batch(self) -> Batch:
        return Batch()

    def _merge(self, unwritten: Batch, later: Batch) -> Batch:
        return Batch(
            searches=(unwritten.searches + later.searches)[:MOST_ENQUEUED],
            events=(unwritten.events + later.events)[:MOST_ENQUEUED],
            seen=unwritten.seen | later.seen,
        )

    def _write(self, batch: Batch) -> None:
        """A session that went away meanwhile takes its searches and events along."""
        measured = events.measure_events(batch.events)
        noted = {search.session_id for search in batch.searches} | {event.session_id for event in measured}
        with transaction.atomic():
            living = _hold({*noted, *batch.seen})
            _write_seen({session_id: at for session_id, at in batch.seen.items() if session_id in living})
            events.write_searches([search for search in batch.searches if search.session_id in living])
            events.write_events([event for event in measured if event.session_id in living])
            activity.count_activity(events=measured, searches=batch.searches)


_buffer = EventBuffer()
enqueue_search = _buffer.enqueue_search
enqueue_seen = _buffer.enqueue_seen
flush = _buffer.flush
clear = _buffer.clear


def enqueue_event(event: PendingEvent) -> None:
    """Once the change it tells of is committed: a change that is taken back never happened."""
    if event.is_significant:
        transaction.on_commit(lambda: _buffer.enqueue_event(event))


remember("records not written yet", clear)


def _hold(session_ids: set[uuid.UUID]) -> set[uuid.UUID]:
    """Those still there, kept from ending until the batch is written; locked in one order by all who do."""
    rows = AgentSession.objects.select_for_update(no_key=True).filter(pk__in=session_ids).order_by("pk")
    return set(rows.values_list("pk", flat=True))


def _write_seen(seen: dict[uuid.UUID, datetime]) -> None:
    """One statement per policy, because its sessions share a lifetime."""
    if not seen:
        return
    latest = max(seen.values())
    ids = list(seen)
    for policy in Policy.objects.filter(agent_sessions__in=ids).distinct().only("session_ttl"):
        AgentSession.objects.filter(pk__in=ids, policy=policy).update(
            last_seen_at=latest, expires_at=latest + policy.session_ttl
        )
