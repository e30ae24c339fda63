"""Keeps this node's search index equal to the catalog: the change only where little changed, else anew."""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

from django.conf import settings
from django.db.models import Max

from catalog.models import Job, Tool
from catalog.models.jobs import JobKind
from catalog.models.tools import ToolQuerySet
from catalog.search import generations, index
from catalog.search.documents import ToolDocument, make_document
from catalog.search.errors import IndexDamaged
from catalog.search.wordvectors import find_encoder
from catalog.services import jobs
from catalog.services.pacing import Pace

# Past this many changed tools a build from scratch is quicker than an update.
LARGEST_UPDATE_TOOLS = 2000
READ_AT_ONCE_ROWS = 1000
WAIT_FOR_OTHERS_SECONDS = 120.0
# Between two updates by jobs, which take a while to reach their worker.
REST_OF_JOBS_SECONDS = 0.2
NO_INDEX = -1


@dataclass(frozen=True, slots=True)
class Standing:
    """The catalog's version that an index follows, and by how many versions it is behind."""

    version: int
    behind: int


_pace = Pace(REST_OF_JOBS_SECONDS)


def run_update(job: Job) -> None:
    """A burst of changes is one update, also where each asked for its own."""
    time.sleep(_pace.seconds_left())
    bring_up_to_date()
    _pace.begin_rest()


def request_update() -> None:
    """Ask for the index to follow a change. A burst of changes is one job.

    Nodes that keep an index of their own see the change by themselves.
    """
    if not settings.NODES_KEEP_OWN_INDEX:
        jobs.request_job(kind=JobKind.UPDATE_INDEX)


def request_if_behind() -> None:
    """Ask for an update when the index is missing, damaged or older than the catalog, whatever the cause."""
    if not settings.NODES_KEEP_OWN_INDEX and is_behind():
        jobs.ensure_job(kind=JobKind.UPDATE_INDEX)


def is_behind() -> bool:
    return _known_version() < _searched_version()


def read_standing() -> Standing | None:
    """How far this node's index has followed the catalog; None where there is no index."""
    known = _known_version()
    return None if known == NO_INDEX else Standing(known, max(0, _searched_version() - known))


def bring_up_to_date() -> None:
    """Catch up with the catalog's version; returns when a search that starts now sees all of it."""
    with _only_one():
        try:
            state = index.read_state(settings.INDEX_FOLDER)
            _catch_up(state.version)
            if index.read_state(settings.INDEX_FOLDER).documents != _searchable().count():
                _build()
        except IndexDamaged:
            _build()


def rebuild() -> None:
    """Build the index anew beside the live one, then switch."""
    with _only_one():
        _build()


def read_documents() -> Iterator[ToolDocument]:
    """Every tool that can be searched, as the search sees it."""
    return _documents(_searchable())


def _known_version() -> int:
    try:
        return index.read_state(settings.INDEX_FOLDER).version
    except IndexDamaged:
        return NO_INDEX


def _searched_version() -> int:
    """The version of the last change to what is searched; settings that only decide do not move it."""
    return Tool.objects.aggregate(last=Max("version"))["last"] or 0


def _only_one() -> AbstractContextManager[None]:
    """Reading the catalog and writing what was read are one step: a slow reader must not undo a quick one."""
    return generations.writing(settings.INDEX_FOLDER, WAIT_FOR_OTHERS_SECONDS, lock="CATCH_UP")


def _build() -> None:
    version = _searched_version()
    index.build(settings.INDEX_FOLDER, read_documents(), find_encoder(), version=version)


def _catch_up(known: int) -> None:
    version = _searched_version()
    touched = Tool.objects.filter(version__gt=known)
    if known == version:
        return
    if known > version:  # of another database, or the newest tools were deleted
        _build()
        return
    if touched.count() > LARGEST_UPDATE_TOOLS:
        _build()
        return
    changed = list(_documents(touched.filter(gone_at=None)))
    removed = list(touched.exclude(gone_at=None).values_list("pk", flat=True))
    index.update(settings.INDEX_FOLDER, changed, removed, find_encoder(), version=version)


def _searchable() -> ToolQuerySet:
    """Hidden tools and tools of disabled servers are in the index, and masked when a search asks."""
    return Tool.objects.filter(gone_at=None)


def _documents(tools: ToolQuerySet) -> Iterator[ToolDocument]:
    for tool in tools.select_related("server").order_by("pk").iterator(chunk_size=READ_AT_ONCE_ROWS):
        yield make_document(
            {
                "name": tool.name,
                "title": tool.title,
                "description": tool.description,
                "inputSchema": tool.input_schema,
                "annotations": tool.annotations,
                "_meta": tool.meta,
            },
            id=tool.pk,
            qualified_name=tool.qualified_name,
            server=tool.server.name,
            kind=tool.server.kind,
            keywords=tool.keywords,
        )
