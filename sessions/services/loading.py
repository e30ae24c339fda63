"""Search and load: the one way by which an agent, the console or anything later gets at a deferred tool."""

import time
from dataclasses import dataclass, replace
from datetime import timedelta

from django.utils import timezone

from catalog.domain.errors import InvalidInput
from catalog.domain.policy import Policy as DomainPolicy
from catalog.domain.query import Query, parse_pattern, parse_query
from catalog.domain.sizes import tokens_of
from catalog.search.request import Suggestion
from sessions.domain import loaded
from sessions.domain.loaded import LoadedTools
from sessions.models import AgentSession, EventKind, Outcome, SearchEvent
from sessions.reading.offer import OfferedTool
from sessions.reading.states import read_loaded, stand
from sessions.reading.tool_lists import Standing
from sessions.services import records
from sessions.services.changing import change_session
from sessions.services.events import Cause
from sessions.services.finding import Finding, Found, find_tools

MOST_FALLBACK = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchCall:
    """What an agent asks: exactly one of `query` and `pattern`. `call_id` names the model's own call."""

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
    outcome: Outcome
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


def search_and_load(*, session: AgentSession, call: SearchCall, by: str = "") -> SearchResult:
    """Find tools that the session may see and load them at once, unless asked not to.

    `by` names who searches where that is not the agent itself.
    """
    started = time.perf_counter()
    query = parse_call(call)
    before = read_loaded(session)
    standing = stand(session, before)
    result = answer_search(standing, query, call)
    if call.load and result.matches:
        result = _load(session, before, result, by)
    result = replace(result, took_ms=(time.perf_counter() - started) * 1000)
    _record(session, standing, result)
    return result


def parse_call(call: SearchCall) -> Query:
    """Raises InvalidInput unless exactly one of query and pattern is given, and is well formed."""
    if (call.query is None) == (call.pattern is None):
        raise InvalidInput.at("query", "give either query or pattern, not both and not neither")
    return parse_pattern(call.pattern) if call.pattern is not None else parse_query(call.text)


def most_results(call: SearchCall, policy: DomainPolicy) -> int:
    """How many tools one search may return and load: a caller may ask for fewer than the policy gives."""
    return min(call.max_results or policy.max_results, policy.max_results)


def answer_search(
    standing: Standing, query: Query, call: SearchCall, *, explained: bool = False
) -> SearchResult:
    """What a search finds. It loads nothing and leaves no record."""
    if not standing.offer.is_active:
        return SearchResult(call=call, outcome=Outcome.INACTIVE, form=query.form)
    if query.form == "listing":
        return _fall_back(standing, call, query.form, Outcome.LISTING, Finding(()))
    most = most_results(call, standing.offer.policy)
    finding = find_tools(standing.offer, query, max_results=most, explained=explained)
    if not finding.found:
        return _fall_back(standing, call, query.form, Outcome.NO_MATCH, finding)
    in_force = {tool.name for tool in standing.discovered}
    matches = tuple(
        Match(found, not found.tool.is_deferred or found.tool.name in in_force) for found in finding.found
    )
    return SearchResult(
        call=call,
        outcome=Outcome.MATCHED,
        form=query.form,
        matches=matches,
        missing=finding.missing,
        unmatched_terms=finding.unmatched_terms,
        did_you_mean=finding.did_you_mean,
    )


def load_matches(
    result: SearchResult, present: LoadedTools, *, turn: int, most: int | None
) -> tuple[LoadedTools, tuple[str, ...]]:
    """What is loaded after a search, and the names of what it added."""
    after = loaded.load(present, _deferred_names(result), turn=turn, most=most)
    known = {tool.name for tool in present}
    return after, tuple(tool.name for tool in after if tool.name not in known)


def _fall_back(
    standing: Standing, call: SearchCall, form: str, outcome: Outcome, finding: Finding
) -> SearchResult:
    """List what is deferred, so that the agent can browse or ask again."""
    in_force = {tool.name for tool in standing.discovered}
    listed: list[OfferedTool] = []
    for tool in standing.offer.deferred:
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
        locked=len(standing.offer.locked),
    )


def _load(session: AgentSession, before: LoadedTools, result: SearchResult, by: str) -> SearchResult:
    if _are_in_use(before, _deferred_names(result), turn=session.turn):
        return result
    added: list[str] = []

    def edit(row: AgentSession, policy: DomainPolicy, present: LoadedTools) -> LoadedTools:
        after, added[:] = load_matches(result, present, turn=row.turn, most=policy.max_loaded_tools)
        return after

    change_session(session_id=session.pk, cause=Cause(EventKind.LOADED, by=by), edit=edit)
    return replace(result, loaded=tuple(added))


def _deferred_names(result: SearchResult) -> list[str]:
    return [match.found.tool.name for match in result.matches if match.found.tool.is_deferred]


def _are_in_use(loaded_tools: LoadedTools, wanted: list[str], *, turn: int) -> bool:
    """Whether a search found only what this turn uses already: then there is nothing to write."""
    in_use = {tool.name for tool in loaded_tools if tool.used_turn == turn}
    return in_use.issuperset(wanted)


def _record(session: AgentSession, standing: Standing, result: SearchResult) -> None:
    by_name = standing.offer.by_name
    hits = [[match.found.tool.name, round(match.found.hit.score, 4)] for match in result.matches]
    records.note_search(
        SearchEvent(
            session_id=session.pk,
            at=timezone.now() - timedelta(milliseconds=result.took_ms),  # when it was asked: loads come after
            turn=session.turn,
            query=result.call.text,
            form=result.form,
            outcome=result.outcome,
            hits=hits,
            tokens_loaded=tokens_of(sum(by_name[name].text.chars for name in result.loaded)),
            took_us=round(result.took_ms * 1000),
        )
    )
