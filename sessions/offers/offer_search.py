"""Searches an offer: the catalog's index, and beside it the session's own tools."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from catalog.domain.policy import Policy
from catalog.domain.query import Keywords, Query, Required, name_forms
from catalog.models import Tool
from catalog.search.answers import answer
from catalog.search.request import Hit, SearchOutcome, SearchRequest, Suggestion, are_by_meaning
from catalog.selectors.search import run_search
from sessions.offers.offer import Offer, OfferedTool
from sessions.offers.versions import read_catalog_version


@dataclass(frozen=True, slots=True)
class Found:
    """A tool of the offer that a search found, with its score."""

    tool: OfferedTool
    hit: Hit


@dataclass(frozen=True, slots=True)
class Finding:
    found: tuple[Found, ...]
    missing: tuple[str, ...] = ()
    unmatched_terms: tuple[str, ...] = ()
    did_you_mean: tuple[Suggestion, ...] = ()

    @property
    def is_by_meaning(self) -> bool:
        """Whether something was found, and none of it has a word of the query."""
        return are_by_meaning(found.hit for found in self.found)


def search_offer(
    offer: Offer,
    query: Query,
    *,
    max_results: int,
    explained: bool = False,
    catalog_version: int | None = None,
) -> Finding:
    """Raises InvalidInput for a pattern that cannot be run. Without a `catalog_version` that is read."""
    request = _make_request(offer, query, max_results, explained=explained)
    outcomes = [run_search(request)]
    if offer.own_index is not None:
        outcomes.append(answer(offer.own_index, replace(request, visible=None), None))
    hits = _merge_hits(outcomes, query, max_results)
    unmatched = _in_all([outcome.unmatched_terms for outcome in outcomes])
    return Finding(
        found=tuple(_keep_offered(offer, hits, catalog_version)),
        missing=_in_all([outcome.missing for outcome in outcomes]),
        unmatched_terms=unmatched,
        did_you_mean=tuple(near for near in outcomes[0].did_you_mean if near.term in unmatched),
    )


def _make_request(offer: Offer, query: Query, max_results: int, *, explained: bool) -> SearchRequest:
    policy: Policy = offer.policy
    return SearchRequest(
        query=query,
        ranker=str(policy.ranker),
        max_results=max_results,
        score_cutoff=policy.score_cutoff,
        meaning_floor=policy.meaning_floor,
        visible=offer.visible,
        explained=explained,
    )


def _merge_hits(outcomes: Sequence[SearchOutcome], query: Query, max_results: int) -> list[Hit]:
    """One list, best first; a tool whose exact name was typed comes first."""
    if len(outcomes) == 1:
        return list(outcomes[0].hits)
    hits = [hit for outcome in outcomes for hit in outcome.hits]
    if not isinstance(query, Keywords | Required):
        return hits if query.form == "select" else hits[:max_results]
    typed = {name.lower() for name in name_forms(query.text)}
    hits.sort(key=lambda hit: (not hit.is_named, hit.qualified_name.lower() not in typed, -hit.score))
    return hits[:max_results]


def _keep_offered(offer: Offer, hits: Sequence[Hit], catalog_version: int | None) -> list[Found]:
    """While the decisions follow a change, the database has the last word: hidden and locked are out."""
    known = ((offer.by_name.get(hit.qualified_name), hit) for hit in hits)
    offered = [Found(tool, hit) for tool, hit in known if tool is not None and tool.text.id == hit.id]
    if not offered:
        return offered
    present = read_catalog_version() if catalog_version is None else catalog_version
    if offer.versions.catalog == present:
        return offered
    ids = [found.hit.id for found in offered]
    shown = Tool.objects.listed().let_through(offer.policy.quarantine)
    listed = set(shown.filter(pk__in=ids).values_list("pk", flat=True))
    return [found for found in offered if found.hit.id < 0 or found.hit.id in listed]


def _in_all(lists: Sequence[Sequence[str]]) -> tuple[str, ...]:
    first, *others = lists
    return tuple(text for text in first if all(text in other for other in others))
