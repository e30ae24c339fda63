"""Forgets what has served its time, so that tables grow with the catalog and not with the days.

A server decides how much it leaves behind: that is bounded in rows and bytes as well as in days. Everything
goes in batches, each a short transaction of its own. `docs/operations.md` tells the limits.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Exists, F, Func, IntegerField, OuterRef, Q, Sum, TextField
from django.db.models.functions import Cast
from django.db.models.sql.compiler import SQLCompiler
from django.utils.module_loading import import_string

from catalog.domain.choices import Loading
from catalog.domain.limits import (
    GONE_TOOLS_OF_A_SERVER,
    GONE_TOOLS_OF_A_SERVER_BYTES,
    OLD_REVISIONS_OF_A_SERVER_BYTES,
    REVISIONS_OF_A_TOOL,
    RUNS_OF_A_SERVER,
)
from catalog.models import (
    Change,
    DecidedList,
    Decision,
    OAuthAttempt,
    RefreshRun,
    SavedQuery,
    Server,
    Tool,
    ToolRevision,
    ToolTag,
)
from catalog.models.changes import Subject
from catalog.models.tools import ToolQuerySet
from catalog.services import jobs, vector_retention
from catalog.services.batches import batches
from catalog.services.catalog_lock import lock_catalog

KEEP_JOBS = timedelta(days=7)
KEEP_RUNS = timedelta(days=90)
BATCH_ROWS = 500

# Given qualified names, those that are referred to. `settings.TOOL_REFERENCES` names such functions.
FindReferred = Callable[[Sequence[str]], Iterable[str]]


class ByteLength(Func):
    """The size of a text in bytes of UTF-8."""

    function = "OCTET_LENGTH"
    output_field = IntegerField()

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **options: Any) -> Any:
        """SQLite knows the function only since 3.43."""
        template = "LENGTH(CAST(%(expressions)s AS BLOB))"
        return self.as_sql(compiler, connection, template=template, **options)


def prune(*, now: datetime) -> None:
    """Delete everything that is older than it is kept."""
    jobs.prune_jobs(before=now - KEEP_JOBS)
    OAuthAttempt.objects.filter(expires_at__lt=now).delete()
    vector_retention.prune(now=now)
    for server_id in Server.objects.order_by("pk").values_list("pk", flat=True):
        prune_server(server_id=server_id, now=now)


def prune_server(*, server_id: int, now: datetime) -> None:
    """Delete one server's old records: refresh runs, older revisions, tools that are gone."""
    _prune_runs(server_id, now)
    _prune_revisions(server_id)
    _prune_gone_tools(server_id, now)


def _prune_runs(server_id: int, now: datetime) -> None:
    """The last run of a server is kept, however old: it is what its page shows."""
    runs = RefreshRun.objects.filter(server_id=server_id).order_by("-finished_at", "-pk")
    newest = runs.values_list("pk", flat=True)[:1]
    too_many = runs.values_list("pk", flat=True)[RUNS_OF_A_SERVER:]
    too_old = runs.filter(finished_at__lt=now - KEEP_RUNS).exclude(pk__in=list(newest))
    for batch in batches([*too_many, *too_old.values_list("pk", flat=True)], BATCH_ROWS):
        RefreshRun.objects.filter(pk__in=batch).delete()


def _prune_revisions(server_id: int) -> None:
    """The present form of a tool is kept, and the one that a change is measured from: an admin has to see the
    difference. Of the others the newest, so many of each tool and so many bytes of the server.
    """
    revisions = ToolRevision.objects.filter(tool__server_id=server_id).order_by("-seen_at", "-number")
    measured = revisions.annotate(
        is_baseline=Q(digest=F("tool__baseline_digest")),
        size_bytes=ByteLength(Cast("definition", TextField())),
    )
    rows = measured.values_list("pk", "tool_id", "is_baseline", "size_bytes")
    for batch in batches(list(_find_too_old(rows.iterator(chunk_size=BATCH_ROWS))), BATCH_ROWS):
        ToolRevision.objects.filter(pk__in=batch).delete()


def _find_too_old(rows: Iterable[tuple[int, int, bool, int]]) -> Iterator[int]:
    """Ids of revisions past a limit; given are all of a server, the newest first."""
    seen: Counter[int] = Counter()
    has_baseline: set[int] = set()
    old_bytes = 0
    for revision_id, tool_id, is_baseline, size_bytes in rows:
        is_needed = tool_id not in seen or (is_baseline and tool_id not in has_baseline)
        seen[tool_id] += 1
        if is_baseline:
            has_baseline.add(tool_id)
        if is_needed:
            continue
        old_bytes += size_bytes
        if seen[tool_id] > REVISIONS_OF_A_TOOL or old_bytes > OLD_REVISIONS_OF_A_SERVER_BYTES:
            yield revision_id


def _prune_gone_tools(server_id: int, now: datetime) -> None:
    """Those that are gone for longer than they are kept, and the longest gone past the limits."""
    gone = Tool.objects.filter(server_id=server_id, gone_at__isnull=False)
    if not gone.exists():
        return
    doomed = list(_find_long_gone(gone, before=now - timedelta(days=settings.KEEP_GONE_TOOLS_DAYS)))
    named = _read_expected_names()
    for batch in batches(doomed, BATCH_ROWS):
        _delete_gone(batch, named, now)


def _find_long_gone(gone: ToolQuerySet, *, before: datetime) -> Iterator[int]:
    sizes = ToolRevision.objects.filter(tool=OuterRef("pk")).order_by().values("tool")
    stored = sizes.annotate(total=Sum(ByteLength(Cast("definition", TextField())))).values("total")
    unused = _unused(gone).annotate(size_bytes=stored).order_by("-gone_at", "-pk")
    kept_bytes = 0
    rows = unused.values_list("pk", "gone_at", "size_bytes").iterator(chunk_size=BATCH_ROWS)
    for place, (tool_id, gone_at, size_bytes) in enumerate(rows):
        kept_bytes += size_bytes or 0
        is_too_much = place >= GONE_TOOLS_OF_A_SERVER or kept_bytes > GONE_TOOLS_OF_A_SERVER_BYTES
        if is_too_much or (gone_at is not None and gone_at < before):
            yield tool_id


def _unused(tools: ToolQuerySet) -> ToolQuerySet:
    """Tools on which nobody has set anything and about which nobody has decided anything, or will: a list
    that does not follow the catalog that far may be about to get a decision from before the tool was gone.
    """
    plain = tools.filter(loading=Loading.INHERIT, hidden=False, keywords=[], read_only=None, approved_at=None)
    return plain.exclude(
        Exists(ToolTag.objects.filter(tool=OuterRef("pk")))
        | Exists(Decision.objects.filter(tool=OuterRef("pk")))
        | Exists(DecidedList.objects.filter(catalog_version__lt=OuterRef("facts_version")))
    )


@lock_catalog()
def _delete_gone(tool_ids: Sequence[int], named: set[str], now: datetime) -> None:
    """One of them may have come back meanwhile, or be referred to by its name."""
    recent = Change.objects.filter(
        subject=Subject.TOOL,
        name=OuterRef("qualified_name"),
        at__gte=now - timedelta(days=settings.KEEP_GONE_TOOLS_DAYS),
    )
    still = _unused(Tool.objects.filter(pk__in=tool_ids, gone_at__isnull=False)).exclude(Exists(recent))
    names = dict(still.values_list("qualified_name", "pk"))
    referred = named.union(*(find(list(names)) for find in _load_references()))
    doomed = [tool_id for name, tool_id in names.items() if name not in referred]
    Tool.objects.filter(pk__in=doomed).delete()


def _load_references() -> list[FindReferred]:
    """How other apps, which the catalog does not know, say that they refer to a tool by its name."""
    return [import_string(path) for path in settings.TOOL_REFERENCES]


def _read_expected_names() -> set[str]:
    """The tools that saved queries should find: who reads that one is missing looks for it among the gone."""
    return {name for names in SavedQuery.objects.values_list("expected", flat=True) for name in names}
