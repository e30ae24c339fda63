"""Tries a search for the console: what an agent would find, load and be answered. Changes and records
nothing.
"""

import time
from dataclasses import dataclass, replace

from catalog.domain.choices import Ranker
from catalog.domain.query import Query
from catalog.domain.sizes import tokens_of
from sessions.domain.loaded import LoadedTools
from sessions.models import AgentSession, SearchEventOutcome
from sessions.offers import offer_cache
from sessions.offers.offer import Offer
from sessions.offers.offer_search import Finding, Found, search_offer
from sessions.offers.states import read_loaded, resolve_in_offer
from sessions.services.loading import (
    SearchCall,
    SearchResult,
    answer_search,
    load_matches,
    most_results,
    parse_call,
)


@dataclass(frozen=True, slots=True)
class TrialContext:
    """The context of a trial: a new session of a policy, or a session with its loaded tools."""

    offer: Offer
    loaded: LoadedTools = ()
    turn: int = 0

    def with_ranker(self, ranker: Ranker) -> "TrialContext":
        if ranker == self.offer.policy.ranker:
            return self
        return replace(self, offer=replace(self.offer, policy=replace(self.offer.policy, ranker=ranker)))


@dataclass(frozen=True, slots=True)
class Trial:
    """`result` is the agent's answer. `finding` has every score explained, also where search is inactive.

    Tokens are those of the agent's tools: what the search would add, and the sums before and after.
    """

    query: Query
    result: SearchResult
    finding: Finding
    unloaded: tuple[str, ...]
    added_tokens: int
    tokens_before: int
    tokens_after: int
    tokens_full: int

    @property
    def in_force(self) -> int:
        """How many of the found tools are loaded already."""
        return sum(match.is_already_loaded for match in self.result.matches)


@dataclass(frozen=True, slots=True)
class RankerTrial:
    ranker: Ranker
    found: tuple[Found, ...]


def trial_of_policy(policy_id: int) -> TrialContext:
    return TrialContext(offer_cache.offer_of_policy(policy_id))


def trial_of_session(session: AgentSession) -> TrialContext:
    return TrialContext(offer_cache.offer_of_session(session), read_loaded(session), session.turn)


def try_search(trial_context: TrialContext, call: SearchCall) -> Trial:
    """Raises InvalidInput as the search itself does."""
    started = time.perf_counter()
    query = parse_call(call)
    before = resolve_in_offer(trial_context.offer, trial_context.loaded)
    result = answer_search(before, query, call, explained=True)
    most = trial_context.offer.policy.max_loaded_tools
    after, added = load_matches(result, trial_context.loaded, turn=trial_context.turn, most=most)
    result = replace(result, loaded=added, took_ms=(time.perf_counter() - started) * 1000)
    kept = {tool.name for tool in after}
    sums_before, sums_after = before.tokens(), resolve_in_offer(trial_context.offer, after).tokens()
    return Trial(
        query=query,
        result=result,
        finding=_finding_of(trial_context, query, result),
        unloaded=tuple(tool.name for tool in trial_context.loaded if tool.name not in kept),
        added_tokens=tokens_of(sum(trial_context.offer.by_name[name].text.chars for name in added)),
        tokens_before=sums_before["sent"],
        tokens_after=sums_after["sent"],
        tokens_full=sums_before["full"],
    )


def compare_rankers(trial_context: TrialContext, call: SearchCall) -> list[RankerTrial]:
    """The hits of each ranker; the policy's own comes first."""
    query, own = parse_call(call), Ranker(trial_context.offer.policy.ranker)
    rankers = (own, *(ranker for ranker in Ranker if ranker is not own))
    return [
        RankerTrial(ranker, _find(trial_context.with_ranker(ranker), query, call).found) for ranker in rankers
    ]


def _finding_of(trial_context: TrialContext, query: Query, result: SearchResult) -> Finding:
    """Where nothing is deferred an agent is only told that; a person sees the hits all the same."""
    if result.outcome == SearchEventOutcome.INACTIVE:
        return _find(trial_context, query, result.call)
    return Finding(
        found=tuple(match.found for match in result.matches),
        missing=result.missing,
        unmatched_terms=result.unmatched_terms,
        did_you_mean=result.did_you_mean,
    )


def _find(trial_context: TrialContext, query: Query, call: SearchCall) -> Finding:
    most = most_results(call, trial_context.offer.policy)
    return search_offer(trial_context.offer, query, max_results=most, explained=True)
