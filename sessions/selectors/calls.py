"""Recorded calls: one, or a part of the list, the newest first.

The list may have millions of rows: nothing here counts them, and every part begins at a place in an index.
"""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from django.db.models import Q, QuerySet
from django.utils.dateparse import parse_datetime

from catalog.console.cursors import read_cursor, write_cursor
from catalog.domain.errors import InvalidInput, NotFound
from catalog.domain.limits import ROW_ID
from catalog.models import ApiKey, Server, Tool
from sessions.models import AgentSession, Call, CallOutcome, Via
from sessions.selectors.stamps import stamp_of

PART_ROWS = 50
# Of those that the other filters leave, so many are looked through for a client, a server's tool or the like.
LOOKED_THROUGH = 20_000
EXPORTED_AT_ONCE = 1_000
MOST_EXPORTED = 100_000


class Place(NamedTuple):
    """Where a call is in the order of time."""

    at: datetime
    pk: int

    @property
    def cursor(self) -> str:
        return write_cursor(self.at.isoformat(), str(self.pk))


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFilter:
    """`key` is a key's name or id, `client` a part of a client's name."""

    key: str = ""
    server: str = ""
    tool: str = ""
    outcome: CallOutcome | None = None
    via: Via | None = None
    client: str = ""
    session_id: uuid.UUID | None = None

    @property
    def is_default(self) -> bool:
        return self == CallFilter()

    @property
    def needs_search(self) -> bool:
        """Whether something is asked for that no index answers."""
        return bool(self.client or self.via)


@dataclass(frozen=True, slots=True)
class CallPart:
    """Some calls that follow each other, the newest first. The next parts begin at `newer` and `older`.

    `looked_through` is set where the search for older ones was ended there.
    """

    calls: Sequence[Call]
    newer: Place | None = None
    older: Place | None = None
    looked_through: datetime | None = None


@dataclass(frozen=True, slots=True)
class Linked:
    """What calls name that still has a page."""

    servers: dict[str, Server] = field(default_factory=dict)
    tools: dict[str, Tool] = field(default_factory=dict)
    sessions: frozenset[uuid.UUID] = frozenset()


@dataclass(frozen=True, slots=True)
class CallRow:
    call: Call
    server: Server | None
    tool: Tool | None
    has_session: bool

    @property
    def short_name(self) -> str:
        """The tool's name without its server's, which stands beside it."""
        return self.call.tool.removeprefix(f"mcp__{self.call.server}__")


def read_part(
    wanted: CallFilter, *, before: Place | None = None, after: Place | None = None, most: int = PART_ROWS
) -> CallPart:
    """The newest, or those right before a place, or right after one where no search is needed."""
    if after is not None and not wanted.needs_search:
        return _read_after(wanted, after, most)
    calls = _matching(wanted)
    if before is not None:
        calls = calls.filter(_is_before(before))
    horizon = _find_horizon(calls) if wanted.needs_search else None
    found = list(_narrow(calls, wanted, horizon)[: most + 1])
    shown = found[:most]
    newer = _place_of(shown[0]) if before and shown and not wanted.needs_search else None
    if len(found) > most:
        return CallPart(shown, newer, _place_of(shown[-1]))
    return CallPart(shown, newer, horizon, horizon.at if horizon else None)


def _read_after(wanted: CallFilter, after: Place, most: int) -> CallPart:
    found = list(_matching(wanted).filter(_is_after(after)).order_by("at", "pk")[: most + 1])
    if len(found) <= most:
        return read_part(wanted, most=most)  # the newest: a full part
    shown = found[:most][::-1]
    return CallPart(shown, newer=_place_of(shown[0]), older=_place_of(shown[-1]))


def find_call(call_id: int) -> Call:
    call = Call.objects.filter(pk=call_id).first() if call_id <= ROW_ID else None
    if call is None:
        raise NotFound("There is no such call. Calls are deleted after some time.")
    return call


def iterate_calls(wanted: CallFilter) -> Iterator[Call]:
    """The newest `MOST_EXPORTED`, read in parts, so that no statement takes long."""
    before, left = None, MOST_EXPORTED
    while left:
        part = read_part(wanted, before=before, most=min(EXPORTED_AT_ONCE, left))
        yield from part.calls
        left -= len(part.calls)
        before = part.older
        if before is None:
            return


def stamp_part(part: CallPart, *, now: datetime) -> str:
    """Differs whenever a row differs, and every minute because of the shown ages."""
    return stamp_of([call.pk for call in part.calls], part.newer, part.older, f"{now:%H:%M}")


def read_rows(calls: Sequence[Call]) -> list[CallRow]:
    """With what they name, where it is still there: three reads however many they are."""
    linked = find_linked(calls)
    return [
        CallRow(
            call,
            linked.servers.get(call.server),
            linked.tools.get(call.tool),
            call.session_id in linked.sessions,
        )
        for call in calls
    ]


def find_linked(calls: Sequence[Call]) -> Linked:
    if not calls:
        return Linked()
    sessions = {call.session_id for call in calls if call.session_id}
    there = AgentSession.objects.filter(pk__in=sessions).values_list("pk", flat=True) if sessions else ()
    servers = Server.objects.filter(name__in={call.server for call in calls}).only("name")
    tools = Tool.objects.filter(qualified_name__in={call.tool for call in calls})
    return Linked(
        {server.name: server for server in servers},
        {tool.qualified_name: tool for tool in tools.only("name", "qualified_name")},
        frozenset(there),
    )


def read_place(cursor: str) -> Place:
    """Raises InvalidInput for a text that no answer has given."""
    at_text, pk_text = read_cursor(cursor, parts=2)
    try:
        at, pk = parse_datetime(at_text), int(pk_text)
        if at is not None and at.tzinfo is not None and 0 <= pk <= ROW_ID:
            return Place(at.astimezone(UTC), pk)
    except (ValueError, OverflowError):  # a moment before the year 1 in UTC
        pass
    raise InvalidInput.at("query.cursor", "is no cursor of this list")


def _place_of(call: Call) -> Place:
    return Place(call.at, call.pk)


def _matching(wanted: CallFilter) -> QuerySet[Call]:
    """By what has an index."""
    calls = Call.objects.order_by("-at", "-pk").defer("arguments", "result")
    if wanted.key:
        calls = calls.filter(_of_key(wanted.key))
    if wanted.session_id:
        calls = calls.filter(session_id=wanted.session_id)
    for name in ("server", "tool", "outcome"):
        if value := getattr(wanted, name):
            calls = calls.filter(**{name: value})
    return calls


def _of_key(text: str) -> Q:
    """A key that is gone is known by its name alone."""
    named = Q(name=text)
    if _is_id(text):
        named |= Q(pk=int(text))
    ids = list(ApiKey.objects.filter(named).values_list("pk", flat=True))
    return Q(key__in=ids) if ids else Q(key=None, key_name=text)


def name_key(text: str) -> str:
    """The name of a key that a filter gives by name or id."""
    key = ApiKey.objects.filter(pk=int(text)).first() if _is_id(text) else None
    return key.name if key else text


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= ROW_ID


def _find_horizon(calls: QuerySet[Call]) -> Place | None:
    """The last of those that are looked through; None where there are fewer."""
    row = calls.values_list("at", "pk")[LOOKED_THROUGH - 1 : LOOKED_THROUGH].first()
    return Place(*row) if row else None


def _narrow(calls: QuerySet[Call], wanted: CallFilter, horizon: Place | None) -> QuerySet[Call]:
    """By what has none."""
    if horizon is not None:
        calls = calls.filter(at__gte=horizon.at).exclude(at=horizon.at, pk__lt=horizon.pk)
    if wanted.via:
        calls = calls.filter(via=wanted.via)
    return calls.filter(client__icontains=wanted.client) if wanted.client else calls


def _is_before(place: Place) -> Q:
    """The first condition alone is one that an index answers."""
    return Q(at__lte=place.at) & (Q(at__lt=place.at) | Q(pk__lt=place.pk))


def _is_after(place: Place) -> Q:
    return Q(at__gte=place.at) & (Q(at__gt=place.at) | Q(pk__gt=place.pk))
