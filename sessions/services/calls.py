"""Records of calls through the gateway, and of the clients that call: enqueued, and written behind."""

import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from operator import attrgetter

from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.models import CharField, DateTimeField, ForeignKey, UUIDField

from catalog.access.key_uses import keep_printable
from catalog.domain.limits import CALL_ERROR_CHARS, COUNT, GATEWAY_CLIENTS_OF_A_KEY
from catalog.models import ApiKey
from catalog.process_memory import remember
from catalog.write_behind import WriteBehindBuffer
from sessions.domain.recorded import write_recorded
from sessions.models import Call, GatewayClient
from sessions.models.gateway import MAX_NAME_CHARS, MAX_REVISION_CHARS

__all__ = [
    "PendingCall",
    "clear",
    "enqueue_call",
    "enqueue_client",
    "flush",
    "write_recorded",
]

MOST_ENQUEUED = 10_000
# Of arguments and results that wait to be written: past it a call is recorded without them.
MOST_ENQUEUED_CHARS = 64 * 1024 * 1024
MOST_CLIENTS_ENQUEUED = 1_000
CLIENT_EVERY_SECONDS = 60.0
EXPOSURE_CHARS = 8
_SHORTENED = {
    field.attname: field.max_length or 0
    for field in Call._meta.local_concrete_fields
    if isinstance(field, CharField)
}
_COUNTED = ("duration_ms", "upstream_ms", "request_bytes", "result_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCall:
    """A `Call` that is not written yet. Making a model's object takes longer."""

    at: datetime
    key_id: int | None
    key_name: str
    session_id: uuid.UUID | None
    policy: str
    client: str
    revision: str
    server: str
    tool: str
    via: str
    outcome: str
    duration_ms: int
    upstream_ms: int | None
    request_bytes: int
    result_bytes: int
    is_cut: bool
    error: str = ""
    arguments: str = ""
    result: str = ""


@dataclass(frozen=True, slots=True, order=True)
class _Client:
    """What tells a row of `GatewayClient` from others."""

    key_id: int
    name: str
    revision: str
    exposure: str


@dataclass(frozen=True, slots=True)
class _Seen:
    version: str
    at: datetime
    called_at: datetime | None


@dataclass(slots=True)
class Batch:
    calls: list[PendingCall] = field(default_factory=list)
    clients: dict[_Client, _Seen] = field(default_factory=dict)
    recorded_chars: int = 0

    def __bool__(self) -> bool:
        return bool(self.calls or self.clients)


class CallBuffer(WriteBehindBuffer[Batch]):
    """Past `MOST_ENQUEUED` calls, what comes is dropped."""

    def __init__(self) -> None:
        super().__init__("calls through the gateway")
        self._clients_at: dict[_Client, tuple[float, bool]] = {}

    def enqueue_call(self, call: PendingCall) -> None:
        with self._lock:
            _append(self._batch, call)
            self._start_timer()

    def enqueue_client(
        self,
        *,
        key_id: int,
        name: str,
        version: str,
        revision: str,
        exposure: str,
        at: datetime,
        is_call: bool,
    ) -> None:
        """At most once a minute for each client, but for a new one and the first call of one that listed."""
        client = _Client(
            key_id, name[:MAX_NAME_CHARS], revision[:MAX_REVISION_CHARS], exposure[:EXPOSURE_CHARS]
        )
        now = time.monotonic()
        last, was_call = self._clients_at.get(client, (-CLIENT_EVERY_SECONDS, False))
        if now - last < CLIENT_EVERY_SECONDS and (was_call or not is_call):
            return
        seen = _Seen(version[:MAX_NAME_CHARS], at, at if is_call else None)
        with self._lock:
            self._enqueue_seen(client, seen, now)
            self._start_timer()

    def _enqueue_seen(self, client: _Client, seen: _Seen, now: float) -> None:
        if len(self._clients_at) >= MOST_CLIENTS_ENQUEUED:
            self._clients_at.clear()
        if client in self._batch.clients or len(self._batch.clients) < MOST_CLIENTS_ENQUEUED:
            self._clients_at[client] = (now, seen.called_at is not None)
            self._batch.clients[client] = _join(self._batch.clients.get(client), seen)

    def clear(self) -> None:
        super().clear()
        self._clients_at.clear()

    def _make_batch(self) -> Batch:
        return Batch()

    def _merge(self, unwritten: Batch, later: Batch) -> Batch:
        merged = Batch(clients=dict(unwritten.clients))
        for call in (*unwritten.calls, *later.calls):
            _append(merged, call)
        for client, seen in later.clients.items():
            if client in merged.clients or len(merged.clients) < MOST_CLIENTS_ENQUEUED:
                merged.clients[client] = _join(merged.clients.get(client), seen)
        return merged

    def _write(self, batch: Batch) -> None:
        """A key that went away meanwhile leaves its calls, and takes its clients along."""
        named = {call.key_id for call in batch.calls if call.key_id is not None}
        with transaction.atomic():
            living = _hold_keys(named | {client.key_id for client in batch.clients})
            insert_calls(
                [call if call.key_id in living else replace(call, key_id=None) for call in batch.calls]
            )
            clients = {client: seen for client, seen in batch.clients.items() if client.key_id in living}
            _upsert_clients(clients)
            for key_id in sorted({client.key_id for client in clients}):
                _trim_clients(key_id)


def _append(batch: Batch, call: PendingCall) -> None:
    if len(batch.calls) >= MOST_ENQUEUED:
        return
    chars = len(call.arguments) + len(call.result)
    if batch.recorded_chars + chars > MOST_ENQUEUED_CHARS:
        call, chars = replace(call, arguments="", result=""), 0
    batch.recorded_chars += chars
    batch.calls.append(call)


def _join(earlier: _Seen | None, later: _Seen) -> _Seen:
    return replace(later, called_at=later.called_at or earlier.called_at) if earlier else later


_buffer = CallBuffer()
enqueue_call = _buffer.enqueue_call
enqueue_client = _buffer.enqueue_client
flush = _buffer.flush
clear = _buffer.clear

remember("calls not written yet", clear)


def _hold_keys(key_ids: Iterable[int]) -> set[int]:
    """Those still there, kept from being deleted until the batch is written; locked in one order by all."""
    keys = ApiKey.objects.select_for_update(no_key=True).filter(pk__in=set(key_ids)).order_by("pk")
    return set(keys.values_list("pk", flat=True))


def insert_calls(calls: Sequence[PendingCall]) -> None:
    """Without the ORM, whose work for each row takes several times as long."""
    if not calls:
        return
    connection = connections[DEFAULT_DB_ALIAS]  # itself: each field would ask the proxy for it again
    quote = connection.ops.quote_name
    fields = [field for field in Call._meta.local_concrete_fields if not field.primary_key]
    places = {field.attname: place for place, field in enumerate(fields)}
    adapted = [field for field in fields if isinstance(field, (ForeignKey, DateTimeField, UUIDField))]
    read = attrgetter(*places)
    rows = [list(read(call)) for call in calls]
    for row in rows:
        _bound(row, places)
        for column in adapted:
            place = places[column.attname]
            row[place] = column.get_db_prep_save(row[place], connection)
    columns = ", ".join(quote(str(field.column)) for field in fields)
    marks = ", ".join(["%s"] * len(fields))
    insert = f"INSERT INTO {quote(Call._meta.db_table)} ({columns}) VALUES ({marks})"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.executemany(insert, rows)


def _bound(row: list[object], places: dict[str, int]) -> None:
    """What one call holds may not keep the others of its batch from being written."""
    for name, most in _SHORTENED.items():
        row[places[name]] = keep_printable(str(row[places[name]])[:most])
    for name in _COUNTED:
        number = row[places[name]]
        row[places[name]] = None if number is None else max(0, min(int(str(number)), COUNT))
    row[places["error"]] = bound_error(str(row[places["error"]]))
    for name in ("arguments", "result"):
        row[places[name]] = _make_storable(str(row[places[name]]))


def bound_error(text: str) -> str:
    """A server's own words on one line."""
    line = keep_printable(" ".join(text[: 4 * CALL_ERROR_CHARS].split()))
    return line if len(line) <= CALL_ERROR_CHARS else f"{line[: CALL_ERROR_CHARS - 1]}…"


def _make_storable(text: str) -> str:
    """Without surrogates and NUL, which PostgreSQL cannot store."""
    return text.encode(errors="replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")


def _upsert_clients(clients: dict[_Client, _Seen]) -> None:
    rows: dict[_Client, _Seen] = {}
    for client, seen in clients.items():
        shown = replace(
            client,
            name=keep_printable(client.name),
            revision=keep_printable(client.revision),
            exposure=keep_printable(client.exposure),
        )
        rows[shown] = _join(rows.get(shown), replace(seen, version=keep_printable(seen.version)))
    called = {client: seen for client, seen in rows.items() if seen.called_at}
    _upsert(called, ["version", "last_seen_at", "last_call_at"])
    _upsert(
        {client: seen for client, seen in rows.items() if client not in called}, ["version", "last_seen_at"]
    )


def _upsert(rows: dict[_Client, _Seen], updated: list[str]) -> None:
    GatewayClient.objects.bulk_create(
        [
            GatewayClient(
                key_id=client.key_id,
                name=client.name,
                revision=client.revision,
                exposure=client.exposure,
                version=seen.version,
                first_seen_at=seen.at,
                last_seen_at=seen.at,
                last_call_at=seen.called_at,
            )
            for client, seen in sorted(rows.items(), key=lambda row: row[0])
        ],
        batch_size=100,
        update_conflicts=True,
        unique_fields=["key", "name", "revision", "exposure"],
        update_fields=updated,
    )


def _trim_clients(key_id: int) -> None:
    clients = GatewayClient.objects.filter(key=key_id).order_by("-last_seen_at", "-pk")
    surplus = list(clients.values_list("pk", flat=True)[GATEWAY_CLIENTS_OF_A_KEY:])
    if surplus:
        clients.filter(pk__in=surplus).delete()
