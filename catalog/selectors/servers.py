"""Servers for pages."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from django.db.models import Case, Count, F, IntegerField, Q, QuerySet, Sum, When
from django.db.models.functions import Coalesce

from catalog.console.paging import Page, cut_page
from catalog.domain.choices import AuthState
from catalog.domain.errors import NotFound
from catalog.domain.server_names import read_server_number
from catalog.domain.sizes import split_tokens, tokens_of
from catalog.models import Job, RefreshRun, Server, ToolRevision
from catalog.models.jobs import JobKind
from catalog.models.servers import Status
from catalog.selectors.totals import CatalogTotals, read_totals

HISTORY_ROWS = 20
REJECTED_ROWS = 10
CHANGE_ROWS = 10
ATTENTION_ROWS = 8
MENU_NAMES = 50  # past this many, a filter has a field that finds a server in place of a menu
FIRST_REFRESH_WITHIN = timedelta(minutes=2)
NEW_FOR = timedelta(hours=1)
ACTIVE_TOOLS = Q(tools__gone_at=None, tools__hidden=False)


class ServerSort(StrEnum):
    STATUS = "status"
    SIZE = "size"
    TOOLS = "tools"
    NAME = "name"
    REFRESHED = "refreshed"


# Failing ones first, then those that have not answered yet and those that are new: an import is seen at once.
_STATUS_RANK = Case(
    When(enabled=False, then=4),
    When(failures__gt=0, then=0),
    When(last_refreshed_at=None, then=1),
    When(is_new=True, then=2),
    default=3,
)
ORDERS = {
    ServerSort.STATUS: (_STATUS_RANK, F("new_at").desc(nulls_last=True), "-chars", "name"),
    ServerSort.SIZE: ("-chars", "name"),
    ServerSort.TOOLS: ("-tool_count", "name"),
    ServerSort.NAME: ("name",),
    ServerSort.REFRESHED: (F("last_refreshed_at").desc(nulls_last=True), "name"),
}


@dataclass(frozen=True, slots=True)
class ServerRow:
    """A server with its tool count and its share of all enabled servers' tokens."""

    server: Server
    tools: int
    tokens: int
    share: float
    is_refreshing: bool = False
    is_new: bool = False

    @property
    def share_percent(self) -> float:
        return round(self.share * 100, 2)


@dataclass(frozen=True, slots=True)
class ServerNames:
    names: list[str]
    is_cut: bool  # there are more


@dataclass(frozen=True, slots=True)
class RunRow:
    """`rejected` are the first rejected definitions, `rejected_left` is how many more there are."""

    run: RefreshRun
    took_seconds: float
    rejected: Sequence[Mapping[str, str]]
    rejected_left: int


def servers_for_table(
    *,
    now: datetime,
    text: str = "",
    status: Status | None = None,
    sort: ServerSort = ServerSort.STATUS,
    is_reversed: bool = False,
    page: str | int = 1,
) -> Page[ServerRow]:
    """The most urgent first: what fails, what has not answered yet, what is new."""
    totals = read_totals()
    wanted = Server.objects.of_status(status) if status else Server.objects.all()
    new_since = now - NEW_FOR
    found = (
        _with_sizes(wanted)
        .filter(name__icontains=text)
        .annotate(
            is_new=Case(When(created_at__gt=new_since, then=True), default=False),
            new_at=Case(When(created_at__gt=new_since, then=F("created_at"))),
        )
        .order_by(*ORDERS[sort])
    )
    servers = cut_page(found.reverse() if is_reversed else found, page)
    refreshing = _being_refreshed(servers.rows)
    has_old = not all(server.is_new for server in servers.rows)
    rows = [
        replace(_row(server, totals), is_refreshing=server.pk in refreshing, is_new=has_old and server.is_new)
        for server in servers.rows
    ]
    return servers.with_rows(rows)


def largest_servers(limit: int, totals: CatalogTotals) -> list[ServerRow]:
    """Enabled servers that have tools, the most expensive first. Rounded together: where all are shown, their
    tokens add up to those of the catalog.
    """
    servers = _with_sizes().filter(enabled=True, tool_count__gt=0).order_by("-chars", "name")[:limit]
    tokens = split_tokens(server.chars for server in servers)
    return [
        replace(_row(server, totals), tokens=of_server)
        for server, of_server in zip(servers, tokens, strict=True)
    ]


def find_names(text: str = "", *, limit: int = MENU_NAMES) -> ServerNames:
    """Names that contain the text, those that begin with it first."""
    begins = Case(When(name__istartswith=text, then=0), default=1, output_field=IntegerField())
    found = Server.objects.filter(name__icontains=text).order_by(begins, "name")
    names = list(found.values_list("name", flat=True)[: limit + 1])
    return ServerNames(names[:limit], is_cut=len(names) > limit)


def at_address(address: str) -> Q:
    """The server of an address: by name, or by id, as in `~12`."""
    number = read_server_number(address)
    return Q(name=address) if number is None else Q(pk=number)


def find_server(address: str) -> Server:
    """With what is known of signing in to it."""
    found = Server.objects.select_related("oauth_client", "oauth_grant").filter(at_address(address))
    server = found.first()
    if server is None:
        raise NotFound(f"There is no server named {address}.")
    return server


def server_row(server: Server) -> ServerRow:
    return _row(_with_sizes().get(pk=server.pk), read_totals())


def refresh_history(server: Server) -> list[RunRow]:
    runs = server.runs.all()[:HISTORY_ROWS]
    return [_run_row(run) for run in runs]


def _run_row(run: RefreshRun) -> RunRow:
    shown = run.rejected[:REJECTED_ROWS]
    took_seconds = (run.finished_at - run.started_at).total_seconds()
    return RunRow(run, took_seconds, shown, run.rejected_count - len(shown))


def changed_definitions(server: Server) -> list[tuple[ToolRevision, ToolRevision]]:
    """The latest revisions that changed a definition, each with the one before it; the newest first."""
    revisions = ToolRevision.objects.filter(tool__server=server)
    newer = list(
        revisions.filter(number__gt=1)
        .select_related("tool__server")
        .order_by("-seen_at", "-pk")[:CHANGE_ROWS]
    )
    before = Q()
    for revision in newer:
        before |= Q(tool=revision.tool_id, number=revision.number - 1)
    older = {(row.tool_id, row.number): row for row in revisions.filter(before)} if newer else {}
    pairs = [(revision, older.get((revision.tool_id, revision.number - 1))) for revision in newer]
    return [(revision, previous) for revision, previous in pairs if previous is not None]


def last_refresh_job(server: Server) -> Job | None:
    return Job.objects.filter(kind=JobKind.REFRESH_SERVER, subject=server.pk).order_by("-pk").first()


@dataclass(frozen=True, slots=True)
class Attention:
    """Servers that need a look: the first of them, and how many more there are.

    Where there are none, `answered` have answered when they were last asked, `unasked` were not asked yet.
    """

    servers: Sequence[Server]
    more: int = 0
    answered: int = 0
    unasked: int = 0


def servers_needing_attention(*, now: datetime) -> Attention:
    """Enabled servers that fail, that refused a call for want of a right, or whose first refresh is overdue.

    Each with its grant.
    """
    is_forgotten = Q(last_refreshed_at=None, created_at__lt=now - FIRST_REFRESH_WITHIN)
    lacks_rights = Q(oauth_grant__state=AuthState.SCOPE_NEEDED)
    troubled = Server.objects.filter(Q(failures__gt=0) | lacks_rights | is_forgotten, enabled=True)
    shown = list(troubled.select_related("oauth_grant").order_by("-failures", "name")[: ATTENTION_ROWS + 1])
    if shown:
        more = troubled.count() - ATTENTION_ROWS if len(shown) > ATTENTION_ROWS else 0
        return Attention(shown[:ATTENTION_ROWS], more)
    counts = Server.objects.refreshable().aggregate(
        answered=Count("last_refreshed_at"), unasked=Count("pk", filter=Q(last_refreshed_at=None))
    )
    return Attention((), **counts)


def _being_refreshed(servers: Iterable[Server]) -> set[int]:
    """Ids of servers with a waiting or running refresh, in one query."""
    open_jobs = Job.objects.open().filter(
        kind=JobKind.REFRESH_SERVER, subject__in=[server.pk for server in servers]
    )
    return set(open_jobs.values_list("subject", flat=True))


def _with_sizes(servers: QuerySet[Server] | None = None) -> QuerySet[Any]:
    """Servers with `tool_count` and `chars` of their tools neither hidden nor gone, in one query."""
    return (Server.objects.all() if servers is None else servers).annotate(
        tool_count=Count("tools", filter=ACTIVE_TOOLS),
        chars=Coalesce(Sum("tools__chars", filter=ACTIVE_TOOLS), 0),
    )


def _row(server: Any, totals: CatalogTotals) -> ServerRow:
    share = totals.share_of(server.chars) if server.enabled else 0.0
    return ServerRow(server=server, tools=server.tool_count, tokens=tokens_of(server.chars), share=share)
