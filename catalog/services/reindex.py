"""Keeps this node's search index equal to the catalog: incrementally where little changed, else rebuilt."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from threading import Lock

from django.conf import settings

from catalog.models import Job, Tool
from catalog.models.jobs import JobKind
from catalog.process_memory import remember
from catalog.search import generations, index
from catalog.search.errors import IndexDamaged
from catalog.search.index import IndexState
from catalog.search.meaning import Encoder
from catalog.search.stored_vectors import StoredVectors
from catalog.selectors.documents import documents_of, read_documents, searchable_tools, searched_version
from catalog.selectors.encoder import read_index_encoder
from catalog.services import jobs

# Past this many changed tools a build from scratch is quicker than an update.
LARGEST_UPDATE_TOOLS = 2000
WAIT_FOR_OTHERS_SECONDS = 120.0
# Between two updates by jobs, which take a while to reach their worker.
REST_OF_JOBS_SECONDS = 0.2
NO_INDEX = -1


@dataclass(frozen=True, slots=True)
class IndexLag:
    """The catalog's version that the index has reached, and how many versions it is behind."""

    version: int
    behind: int


class Debounce:
    """Keeps pieces of costly work some time apart, so that a burst of requests is one piece."""

    def __init__(self, interval_seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._interval_seconds = interval_seconds
        self._clock = clock
        self._open_at = float("-inf")
        self._lock = Lock()

    def seconds_left(self) -> float:
        with self._lock:
            return max(0.0, self._open_at - self._clock())

    def end_rest(self) -> None:
        with self._lock:
            self._open_at = float("-inf")

    def restart(self) -> None:
        with self._lock:
            self._open_at = self._clock() + self._interval_seconds


_debounce = Debounce(REST_OF_JOBS_SECONDS)
remember("the last index update", _debounce.end_rest)


def run_update(job: Job) -> None:
    """A burst of changes is one update, also where each asked for its own."""
    time.sleep(_debounce.seconds_left())
    bring_up_to_date()
    _debounce.restart()


def request_update() -> None:
    """Request an index update after a change. A burst of changes is one job.

    Nodes with an index of their own see the change by themselves.
    """
    if not settings.NODES_KEEP_OWN_INDEX:
        jobs.request_job(kind=JobKind.UPDATE_INDEX)


def request_if_behind() -> None:
    """Request an update when the index is missing, damaged or older than the catalog or its vectors."""
    if not settings.NODES_KEEP_OWN_INDEX and is_behind():
        jobs.ensure_job(kind=JobKind.UPDATE_INDEX)


def is_behind() -> bool:
    try:
        state = index.read_index_state(settings.INDEX_FOLDER)
    except IndexDamaged:
        return True
    if state.version < searched_version():
        return True
    encoder, number = read_index_encoder()
    return not state.is_of(encoder) or _can_take_over(state, encoder, number)


def read_index_lag() -> IndexLag | None:
    """How far this node's index is behind the catalog; None where there is no index."""
    known = _known_version()
    return None if known == NO_INDEX else IndexLag(known, max(0, searched_version() - known))


def bring_up_to_date() -> None:
    """Update to the catalog's version; returns when a search that starts now sees all of it."""
    with _only_one():
        try:
            state = index.read_index_state(settings.INDEX_FOLDER)
            if not state.is_of(read_index_encoder()[0]):
                _build()
                return
            _catch_up(state.version)
            _take_over_vectors()
            if index.read_index_state(settings.INDEX_FOLDER).documents != searchable_tools().count():
                _build()
        except IndexDamaged:
            _build()


def rebuild() -> None:
    """Rebuild the index beside the live one, then switch."""
    with _only_one():
        _build()


def _known_version() -> int:
    try:
        return index.read_index_state(settings.INDEX_FOLDER).version
    except IndexDamaged:
        return NO_INDEX


def _only_one() -> AbstractContextManager[None]:
    """A lock around reading the catalog and writing the index: a slow reader must not overwrite a newer
    index.
    """
    return generations.writing(settings.INDEX_FOLDER, WAIT_FOR_OTHERS_SECONDS, lock="CATCH_UP")


def _build() -> None:
    version = searched_version()
    encoder, number = read_index_encoder()
    index.build(settings.INDEX_FOLDER, read_documents(), encoder, version=version, vectors_number=number)


def _take_over_vectors() -> None:
    """Those of tools that were indexed before they were encoded."""
    encoder, number = read_index_encoder()
    if isinstance(encoder, StoredVectors):
        state = index.read_index_state(settings.INDEX_FOLDER)
        if _can_take_over(state, encoder, number):
            index.fill_vectors(settings.INDEX_FOLDER, encoder, vectors_number=number)


def _can_take_over(state: IndexState, encoder: Encoder | None, number: int) -> bool:
    return isinstance(encoder, StoredVectors) and state.without_vector > 0 and state.vectors_number != number


def _catch_up(known: int) -> None:
    version = searched_version()
    touched = Tool.objects.filter(version__gt=known)
    if known == version:
        return
    if known > version:  # of another database, or the newest tools were deleted
        _build()
        return
    if touched.count() > LARGEST_UPDATE_TOOLS:
        _build()
        return
    changed = list(documents_of(touched.filter(gone_at=None)))
    removed = list(touched.exclude(gone_at=None).values_list("pk", flat=True))
    index.update(settings.INDEX_FOLDER, changed, removed, read_index_encoder()[0], version=version)
