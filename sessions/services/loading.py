"""Search and load, used by agents, the console and everything else that loads a deferred tool."""

import time
from dataclasses import dataclass, replace
from datetime import timedelta

from django.utils import timezone

from catalog.domain.errors import InvalidInput
from catalog.domain.limits import QUERY_CHARS
from catalog.domain.policy import Policy as DomainPolicy
from catalog.domain.query import Query, parse_pattern, parse_query
from catalog.domain.sizes import tokens_of
from catalog.search.request import Suggestion, are_by_meaning
from sessions.domain import loaded
from sessions.domain.loaded import LoadedTools
from sessions.models import AgentSession, EventKind, SearchEventOutcome
from sessions.offers.offer import OfferedTool
from sessions.offers.offer_search import Finding, Found, search_offer
from sessions.offers.plain_sessions import SessionReading
from sessions.offers.states import read_for_search, resolve_tools
from sessions.offers.tool_lists import ResolvedTools
from sessions.services import eviction, write_behind
from sessions.services.events import Cause, PendingSearch
from sessions.services.session_changes import edit_session

MOST_FALLBACK = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchCall:
    """An agent's search: exactly one of `query` and `pattern`. `call_id` is the model's own call id."""

    query: str | None = None
    pattern: str | None = None
    max_results: int | None = None
    load: bool = True
    call_id: str | None = None

    @property
    def text(self) -> str:
        return (self.query if self.pattern is None else self.pattern) or ""


@dataclass(frozen=True, slots=True)
class Match:
    found: Found
    is_already_loaded: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    call: SearchCall
    outcome: SearchEventOutcome
    form: str
    matches: tuple[Match, ...] = ()
    loaded: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unmatched_terms: tuple[str, ...] = ()
    did_you_mean: tuple[Suggestion, ...] = ()
    fallback: tuple[OfferedTool, ...] = ()
    is_truncated: bool = False
    locked: int = 0  # tools that quarantine keeps from the session
    took_ms: float = 0.0

    @property
    def is_by_meaning(self) -> bool:
        """Whether something was found, and none of it has a word of the query."""
        return are_by_meaning(match.found.hit for match in self.matches)


def search_and_load(*, session: AgentSession, call: SearchCall, by: str = "") -> SearchResult:
    """Find tools that the session may see and load them at once, unless asked not to.

    `by` names who searches where that is not the agent.
    """
    return search_as_read(read_for_search(session), call=call, by=by)


def search_as_read(reading: SessionReading, *, call: SearchCall, by: str = "") -> SearchResult:
    """The same for a session that has been read with all that a search needs of it."""
    started = time.perf_counter()
    query = parse_call(call)
    session = reading.session
    resolved = resolve_tools(session, reading.loaded, reading.versions)
    result = answer_search(resolved, query, call, catalog_version=reading.catalog_version)
    if call.load and result.matches:
        result = _load(session, reading.loaded, result, by)
    result = replace(result, took_ms=(time.perf_counter() - started) * 1000)
    _record(session, resolved, result)
    return result


def parse_call(call: SearchCall) -> Query:
    """Raises InvalidInput unless exactly one of query and pattern is given, and is well formed."""
    if (call.query is None) == (call.pattern is None):
        raise InvalidInput.at("query", "give either query or pattern, not both and not neither")
    return parse_pattern(call.pattern) if call.pattern is not None else parse_query(call.text)


def most_results(call: SearchCall, policy: DomainPolicy) -> int:
    """The most tools that one search may return and load: the caller's limit within the policy's."""
    return min(call.max_results or policy.max_results, policy.max_results)


def answer_search(
    resolved: ResolvedTools,
    query: Query,
    call: SearchCall,
    *,
    explained: bool = False,
    catalog_version: int | None = None,
) -> SearchResult:
    """Find tools. Loads nothing and records nothing."""
    if not resolved.offer.is_active:
        return SearchResult(call=call, outcome=SearchEventOutcome.INACTIVE, form=query.form)
    if query.form == "listing":
        return _fall_back(resolved, call, query.form, SearchEventOutcome.LISTING, Finding(()))
    most = most_results(call, resolved.offer.policy)
    finding = search_offer(
        resolved.offer, query, max_results=most, explained=explained, catalog_version=catalog_version
    )
    if not finding.found:
        return _fall_back(resolved, call, query.form, SearchEventOutcome.NO_MATCH, finding)
    in_force = {tool.name for tool in resolved.discovered}
    matches = tuple(
        Match(found, not found.tool.is_deferred or found.tool.name in in_force) for found in finding.found
    )
    return SearchResult(
        call=call,
        outcome=SearchEventOutcome.MATCHED,
        form=query.form,
        matches=matches,
        missing=finding.missing,
        unmatched_terms=finding.unmatched_terms,
        did_you_mean=finding.did_you_mean,
    )


def load_matches(
    result: SearchResult, present: LoadedTools, *, turn: int, most: int | None
) -> tuple[LoadedTools, tuple[str, ...]]:
    """The loaded tools after a search, and the names of those it added."""
    after = loaded.load(present, _deferred_names(result), turn=turn, most=most)
    known = {tool.name for tool in present}
    return after, tuple(tool.name for tool in after if tool.name not in known)


def _fall_back(
    resolved: ResolvedTools, call: SearchCall, form: str, outcome: SearchEventOutcome, finding: Finding
) -> SearchResult:
    """The deferred tools, so that the agent can browse or refine its query."""
    in_force = {tool.name for tool in resolved.discovered}
    listed: list[OfferedTool] = []
    for tool in resolved.offer.deferred:
        if len(listed) > MOST_FALLBACK:
            break
        if tool.name not in in_force:
            listed.append(tool)
    return SearchResult(
        call=call,
        outcome=outcome,
        form=form,
        missing=finding.missing,
        unmatched_terms=finding.unmatched_terms,
        did_you_mean=finding.did_you_mean,
        fallback=tuple(listed[:MOST_FALLBACK]),
        is_truncated=len(listed) > MOST_FALLBACK,
        locked=len(resolved.offer.locked),
    )


def _load(session: AgentSession, before: LoadedTools, result: SearchResult, by: str) -> SearchResult:
    if _are_in_use(before, _deferred_names(result), turn=session.turn):
        return result
    added: list[str] = []
    count = 0

    def edit(row: AgentSession, policy: DomainPolicy, present: LoadedTools) -> LoadedTools:
        nonlocal count
        after, added[:] = load_matches(result, present, turn=row.turn, most=policy.max_loaded_tools)
        count = len(after)
        return after

    changed = edit_session(session_id=session.pk, cause=Cause(EventKind.LOADED, by=by), edit=edit)
    if added and eviction.measure_gathered(changed, loaded=count):
        eviction.make_room_for_bytes(changed)
    return replace(result, loaded=tuple(added))


def _deferred_names(result: SearchResult) -> list[str]:
    return [match.found.tool.name for match in result.matches if match.found.tool.is_deferred]


def _are_in_use(loaded_tools: LoadedTools, wanted: list[str], *, turn: int) -> bool:
    """Whether a search found only tools already used in this turn, so that nothing has to be written."""
    in_use = {tool.name for tool in loaded_tools if tool.used_turn == turn}
    return in_use.issuperset(wanted)


def _record(session: AgentSession, resolved: ResolvedTools, result: SearchResult) -> None:
    by_name = resolved.offer.by_name
    hits = [(match.found.tool.name, round(match.found.hit.score, 4)) for match in result.matches]
    write_behind.enqueue_search(
        PendingSearch(
            session_id=session.pk,
            at=timezone.now() - timedelta(milliseconds=result.took_ms),  # when it was asked: loads come after
            turn=session.turn,
            query=result.call.text[:QUERY_CHARS],
            form=result.form,
            outcome=result.outcome,
            hits=hits,
            tokens_loaded=tokens_of(sum(by_name[name].text.chars for name in result.loaded)),
            took_us=round(result.took_ms * 1000),
        )
    )
