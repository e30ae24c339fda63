"""The events of a session, and what its tool list cost from each of them on.

A change only enqueues a pending event; what it cost is measured when the write-behind buffer writes it, from
the session as it was right after.
"""

import itertools
import logging
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models import DateTimeField, ForeignKey, JSONField, QuerySet
from django.utils import timezone

from catalog.domain.errors import NotFound, Unavailable
from sessions.domain.loaded import LoadedTools
from sessions.models import AgentSession, EventKind, SearchEvent, SessionEvent
from sessions.offers.states import resolve_tools
from sessions.offers.versions import Versions, read_versions

BATCH_ROWS = 500
MOST_NAMES = 50
KEPT_EVENTS = 1000
KEPT_SEARCHES = 1000
# Every so many events or searches the oldest of one session go: the busier it is, the sooner its turn comes.
TRIM_EVERY = 50

_written_events, _written_searches = itertools.count(1), itertools.count(1)
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a session is changed. `by` names who did it where that was not the agent."""

    kind: EventKind
    by: str = ""
    snapshot_turn: int | None = None


@dataclass(frozen=True, slots=True)
class PendingEvent:
    """An event that is not measured yet, with the session and its loaded tools right after it."""

    cause: Cause
    session: AgentSession
    before: LoadedTools
    after: LoadedTools
    at: datetime = field(default_factory=timezone.now)

    @property
    def is_significant(self) -> bool:
        """Loading and unloading that moved no tool is no event."""
        if self.cause.kind not in {EventKind.LOADED, EventKind.UNLOADED}:
            return True
        return [tool.name for tool in self.before] != [tool.name for tool in self.after]


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingSearch:
    """A `SearchEvent` that is not written yet. Making a model's object takes longer."""

    session_id: uuid.UUID
    at: datetime
    turn: int
    query: str
    form: str
    outcome: str
    hits: list[tuple[str, float]]
    tokens_loaded: int
    took_us: int


def measure_events(pending: Iterable[PendingEvent]) -> list[SessionEvent]:
    """Reads the versions of each policy once. What cannot be measured any more is left out."""
    versions: dict[int, Versions] = {}
    measured = []
    for event in pending:
        policy_id = event.session.policy_id
        try:
            if policy_id not in versions:
                versions[policy_id] = read_versions(policy_id)
            measured.append(_measure_one(event, versions[policy_id]))
        except (NotFound, Unavailable) as problem:
            logger.warning("an event of session %s is not recorded: %s", event.session.pk, problem)
    return measured


def write_events(measured: Sequence[SessionEvent]) -> None:
    """Append to the timelines, and trim those that are too long."""
    SessionEvent.objects.bulk_create(measured, batch_size=BATCH_ROWS)
    for session_id in _pick_for_trimming(measured, _written_events):
        _trim(SessionEvent.objects.filter(session_id=session_id), KEPT_EVENTS)


def write_searches(searches: Sequence[PendingSearch]) -> None:
    """Append searches to the timelines, and trim those that are too long."""
    _insert_searches(searches)
    for session_id in _pick_for_trimming(searches, _written_searches):
        _trim(SearchEvent.objects.filter(session_id=session_id), KEPT_SEARCHES)


def _insert_searches(searches: Sequence[PendingSearch]) -> None:
    """Without the ORM, whose work for each row takes several times as long."""
    connection = connections[DEFAULT_DB_ALIAS]  # itself: each field would ask the proxy for it again
    quote = connection.ops.quote_name
    fields = [field for field in SearchEvent._meta.local_concrete_fields if not field.primary_key]
    adapted = [field for field in fields if isinstance(field, (ForeignKey, DateTimeField, JSONField))]
    columns = ", ".join(quote(str(field.column)) for field in fields)
    marks = ", ".join(["%s"] * len(fields))
    read = attrgetter(*(field.attname for field in fields))
    rows = [list(read(search)) for search in searches]
    for column in adapted:
        place = fields.index(column)
        for row in rows:
            row[place] = column.get_db_prep_save(row[place], connection)
    insert = f"INSERT INTO {quote(SearchEvent._meta.db_table)} ({columns}) VALUES ({marks})"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.executemany(insert, rows)


def _measure_one(event: PendingEvent, versions: Versions) -> SessionEvent:
    cause, session = event.cause, event.session
    tokens = resolve_tools(session, event.after, versions).tokens()
    loaded = _names_without(event.after, event.before)
    unloaded = _names_without(event.before, event.after)
    return SessionEvent(
        session_id=session.pk,
        at=event.at,
        kind=cause.kind,
        turn=session.turn,
        by=cause.by,
        loaded=loaded[:MOST_NAMES],
        loaded_count=len(loaded),
        unloaded=unloaded[:MOST_NAMES],
        unloaded_count=len(unloaded),
        snapshot_turn=cause.snapshot_turn,
        context_used=session.context_used,
        tokens_full=tokens["full"],
        tokens_sent=tokens["sent"],
    )


def _names_without(tools: LoadedTools, others: LoadedTools) -> list[str]:
    known = {tool.name for tool in others}
    return [tool.name for tool in tools if tool.name not in known]


def _pick_for_trimming(
    written: Iterable[SessionEvent | PendingSearch], counter: Iterator[int]
) -> list[uuid.UUID]:
    """The sessions whose turn it is, each once."""
    chosen = (row.session_id for row in written if next(counter) % TRIM_EVERY == 0)
    return list(dict.fromkeys(chosen))


def _trim(rows: QuerySet[SessionEvent] | QuerySet[SearchEvent], most: int) -> None:
    surplus = list(rows.order_by("-at", "-pk").values_list("pk", flat=True)[most:])
    rows.filter(pk__in=surplus).delete()
