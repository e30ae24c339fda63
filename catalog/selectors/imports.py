"""The servers of an import, for the page that shows how they fare."""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from django.db.models import Case, Count, IntegerField, Q, QuerySet, Sum, Value, When
from django.db.models.functions import Coalesce

from catalog.domain.limits import ROW_ID
from catalog.domain.sizes import tokens_of
from catalog.models import Job, Server, Tool
from catalog.models.jobs import JobKind

ROWS = 100
MOST_RANGES = 300  # in an address: the servers of one import are mostly consecutive
_RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")
_LISTED = Q(tools__gone_at=None, tools__hidden=False)
_FAILING = Q(enabled=True, failures__gt=0)
_WAITING = Q(enabled=True, failures=0, last_refreshed_at=None)


@dataclass(frozen=True, slots=True)
class ImportedServer:
    """`is_refreshing` is true while it is being asked for its tools, or waits for that."""

    server: Server
    tools: int
    tokens: int
    is_refreshing: bool


@dataclass(frozen=True, slots=True)
class ImportResult:
    """Counts of all servers of the import; `rows` are the first, those that fail before the others."""

    rows: list[ImportedServer]
    servers: int
    failing: int
    waiting: int
    disabled: int
    tools: int
    tokens: int

    @property
    def more(self) -> int:
        return self.servers - len(self.rows)

    @property
    def is_settled(self) -> bool:
        return self.waiting == 0


def write_ids(names: Collection[str]) -> str:
    """The servers of these names as ranges of their ids, short enough for an address: `4-9,12`."""
    ids = Server.objects.filter(name__in=list(names)).order_by("pk").values_list("pk", flat=True)
    return ",".join(islice(_write_ranges(ids), MOST_RANGES))


def read_import(ids: str) -> ImportResult:
    """An address that holds no ids is an import of no servers: links must not break."""
    servers = Server.objects.filter(_read_ranges(ids))
    refreshing = Job.objects.open().filter(
        kind=JobKind.REFRESH_SERVER, subject__in=servers.filter(enabled=True).values("pk")
    )
    asked = set(refreshing.values_list("subject", flat=True))
    counts = servers.aggregate(
        total=Count("pk"),
        failing=Count("pk", filter=_FAILING),
        waiting=Count("pk", filter=_WAITING | Q(pk__in=asked)),
        disabled=Count("pk", filter=Q(enabled=False)),
    )
    sums = (
        Tool.objects.listed()
        .filter(server__in=servers)
        .aggregate(count=Count("pk"), chars=Coalesce(Sum("chars"), 0))
    )
    return ImportResult(
        rows=[_row(server, asked) for server in _ordered(servers)[:ROWS]],
        servers=counts["total"],
        failing=counts["failing"],
        waiting=counts["waiting"],
        disabled=counts["disabled"],
        tools=sums["count"],
        tokens=tokens_of(sums["chars"]),
    )


def _ordered(servers: QuerySet[Server]) -> QuerySet[Any]:
    """Those that fail first, then those that wait, the largest of the others, and the disabled last."""
    rank = Case(
        When(_FAILING, then=Value(0)),
        When(_WAITING, then=Value(1)),
        When(enabled=True, then=Value(2)),
        default=Value(3),
        output_field=IntegerField(),
    )
    sized = servers.annotate(
        rank=rank,
        tool_count=Count("tools", filter=_LISTED),
        chars=Coalesce(Sum("tools__chars", filter=_LISTED), 0),
    )
    return sized.order_by("rank", "-chars", "name")


def _row(server: Any, asked: set[int]) -> ImportedServer:
    return ImportedServer(server, server.tool_count, tokens_of(server.chars), server.pk in asked)


def _write_ranges(ids: Iterable[int]) -> Iterator[str]:
    first = last = None
    for number in ids:
        if last is not None and number == last + 1:
            last = number
            continue
        if first is not None:
            yield f"{first}-{last}" if first != last else str(first)
        first = last = number
    if first is not None:
        yield f"{first}-{last}" if first != last else str(first)


def _read_ranges(text: str) -> Q:
    found = Q(pk__in=[])
    for part in text.split(",")[:MOST_RANGES]:
        if bounds := _RANGE.fullmatch(part):
            first, last = int(bounds[1]), int(bounds[2] or bounds[1])
            found |= Q(pk__range=(min(first, ROW_ID), min(last, ROW_ID)))
    return found
