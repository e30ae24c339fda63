"""Searches the catalog with this process's engine, and answers from the database where the index is away."""

from functools import lru_cache
from pathlib import Path

from django.conf import settings

from catalog.domain.query import parse_query
from catalog.models import CatalogVersion, Decision, Policy, Tool
from catalog.search.answers import answer
from catalog.search.compiled import Compiled
from catalog.search.compiling import compile_documents
from catalog.search.engine import SearchEngine
from catalog.search.errors import IndexDamaged
from catalog.search.request import SearchOutcome, SearchRequest, Visible
from catalog.search.wordvectors import find_encoder
from catalog.services import reindex


def search_catalog(*, query: str, ranker: str, limit: int) -> SearchOutcome:
    """Search every tool that is listed, with the parts of each score. Raises InvalidInput for a bad query."""
    request = SearchRequest(
        query=parse_query(query),
        ranker=ranker,
        max_results=limit,
        visible=_read_listed(CatalogVersion.current()),
        explained=True,
    )
    return run_search(request)


def search_policy(
    *, policy: Policy, query: str, ranker: str | None = None, limit: int | None = None
) -> SearchOutcome:
    """Search what a policy shows, with its own settings where none are given."""
    shown = Decision.objects.filter(policy=policy).values_list("tool_id", flat=True)
    request = SearchRequest(
        query=parse_query(query),
        ranker=ranker or policy.ranker,
        max_results=limit or policy.max_results,
        score_cutoff=policy.score_cutoff,
        visible=Visible.of(shown),
        explained=True,
    )
    return run_search(request)


def run_search(request: SearchRequest) -> SearchOutcome:
    """Answer a request whose `visible` the caller has chosen."""
    try:
        return _open_engine(settings.INDEX_FOLDER).search(request)
    except IndexDamaged:
        return answer(_compile_catalog(CatalogVersion.current()), request, None)


def forget() -> None:
    """Drop what this process remembers of the catalog: after a restore, versions may repeat."""
    for remembered in (_open_engine, _read_listed, _compile_catalog):
        remembered.cache_clear()


@lru_cache(maxsize=1)
def _open_engine(folder: Path) -> SearchEngine:
    return SearchEngine(folder, find_encoder())


@lru_cache(maxsize=1)
def _read_listed(version: int) -> Visible:
    """Read once for each version of the catalog, not for each search."""
    return Visible.of(Tool.objects.listed().values_list("pk", flat=True))


@lru_cache(maxsize=1)
def _compile_catalog(version: int) -> Compiled:
    """While the index is being rebuilt, one process's own copy of it in memory."""
    return compile_documents(list(reindex.read_documents()), None)
