"""Searches the catalog with this process's engine, or from the database while the index is missing."""

from functools import lru_cache
from pathlib import Path

from django.conf import settings

from catalog.domain.choices import Ranker
from catalog.domain.policy import DEFAULT_MEANING_FLOOR
from catalog.domain.query import parse_query
from catalog.models import CatalogVersion, DecidedList, Decision, Policy, Tool
from catalog.process_memory import remember
from catalog.search.answers import answer
from catalog.search.compiled import Compiled
from catalog.search.compiling import compile_documents
from catalog.search.engine import SearchEngine
from catalog.search.errors import IndexDamaged
from catalog.search.request import SearchOutcome, SearchRequest, Visible
from catalog.selectors.documents import read_documents
from catalog.selectors.encoder import find_encoder

FOUND_AT_MOST = 500
REMEMBERED_POLICIES = 32


def search_catalog(*, query: str, ranker: str, limit: int) -> SearchOutcome:
    """Search every tool that is listed, with the parts of each score. Raises InvalidInput for a bad query."""
    request = SearchRequest(
        query=parse_query(query),
        ranker=ranker,
        max_results=limit,
        visible=read_listed(),
        explained=True,
    )
    return run_search(request)


def find_tool_ids(*, query: str, policy: Policy | None, server: str | None = None) -> list[int]:
    """Ids of the best matches, best first, at most 500. `policy` is an agent's own; None sees everything.

    Raises InvalidInput for a bad query.
    """
    request = SearchRequest(
        query=parse_query(query),
        ranker=policy.ranker if policy else Ranker.BM25F,
        max_results=FOUND_AT_MOST,
        visible=_remember_shown(policy) if policy else _read_listed(CatalogVersion.current()),
        server=server,
        meaning_floor=policy.meaning_floor if policy else DEFAULT_MEANING_FLOOR,
    )
    return [hit.id for hit in run_search(request).hits]


def search_policy(
    *,
    policy: Policy,
    query: str,
    ranker: str | None = None,
    limit: int | None = None,
    shown: Visible | None = None,
) -> SearchOutcome:
    """Search what a policy shows, with its own settings where none are given.

    `shown` is what `read_shown` returned: callers who search many times read it once.
    """
    request = SearchRequest(
        query=parse_query(query),
        ranker=ranker or policy.ranker,
        max_results=limit or policy.max_results,
        score_cutoff=policy.score_cutoff,
        meaning_floor=policy.meaning_floor,
        visible=shown or read_shown(policy),
        explained=True,
    )
    return run_search(request)


def read_listed() -> Visible:
    """Every searchable tool, whatever the policy."""
    return _read_listed(CatalogVersion.current())


def read_shown(policy: Policy) -> Visible:
    return Visible.of(Decision.objects.filter(policy=policy).values_list("tool_id", flat=True))


def run_search(request: SearchRequest) -> SearchOutcome:
    """Answer a request whose `visible` the caller has chosen."""
    try:
        return search_index(request)
    except IndexDamaged:
        return answer(_compile_catalog(CatalogVersion.current()), request, None)


def search_index(request: SearchRequest) -> SearchOutcome:
    """Search the index alone, for callers that can do without. Raises IndexDamaged where it is missing."""
    return _open_engine(settings.INDEX_FOLDER).search(request)


def is_by_meaning() -> bool:
    """Whether this node's index has the vectors of the encoder in force; costs one `stat`."""
    try:
        return _open_engine(settings.INDEX_FOLDER).snapshot().encoder is not None
    except IndexDamaged:
        return False


@lru_cache(maxsize=1)
def _open_engine(folder: Path) -> SearchEngine:
    return SearchEngine(folder, find_encoder())


@lru_cache(maxsize=1)
def _read_listed(version: int) -> Visible:
    """Cached per version of the catalog."""
    return Visible.of(Tool.objects.listed().values_list("pk", flat=True))


def _remember_shown(policy: Policy) -> Visible:
    """Not cached before the policy's first list is complete: its rows are written in batches at version 0."""
    versions = DecidedList.objects.filter(policy=policy).values_list("version", "policy_version").first()
    if versions is None or versions == (0, 0):
        return Visible.of(())
    return _read_decided(policy.pk, versions[0])


@lru_cache(maxsize=REMEMBERED_POLICIES)
def _read_decided(policy_id: int, version: int) -> Visible:
    """Cached per version of a policy's decisions."""
    return Visible.of(Decision.objects.filter(policy=policy_id).values_list("tool_id", flat=True))


@lru_cache(maxsize=1)
def _compile_catalog(version: int) -> Compiled:
    """An index in this process's memory, used while the one on disk is rebuilt."""
    return compile_documents(list(read_documents()), None)


remember("the opened index", _open_engine.cache_clear)
remember("listed tools", _read_listed.cache_clear)
remember("decided tools", _read_decided.cache_clear)
remember("the catalog compiled in place of an index", _compile_catalog.cache_clear)
