"""Trying a search: what an agent would find, load and be told. Nothing is loaded and nothing is recorded."""

import time
from dataclasses import dataclass, replace

from catalog.domain.choices import Ranker
from catalog.domain.query import Query
from catalog.domain.sizes import tokens_of
from sessions.domain.loaded import LoadedTools
from sessions.models import AgentSession, Outcome
from sessions.reading import offers
from sessions.reading.offer import Offer
from sessions.reading.states import read_loaded, stand_in
from sessions.services.finding import Finding, Found, find_tools
from sessions.services.loading import (
    SearchCall,
    SearchResult,
    answer_search,
    load_matches,
    most_results,
    parse_call,
)


@dataclass(frozen=True, slots=True)
class Scene:
    """As whom a search is tried: a new session of a policy, or a session with what it has loaded."""

    offer: Offer
    loaded: LoadedTools = ()
    turn: int = 0

    def with_ranker(self, ranker: Ranker) -> "Scene":
        if ranker == self.offer.policy.ranker:
            return self
        return replace(self, offer=replace(self.offer, policy=replace(self.offer.policy, ranker=ranker)))


@dataclass(frozen=True, slots=True)
class Trial:
    """`result` is the agent's answer. `finding` has every score explained, also where search is inactive.

    Tokens are those that the agent's tools cost: what the search would add, and the sums around it.
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
        """How many of the tools found need no loading."""
        return sum(match.is_already_loaded for match in self.result.matches)


@dataclass(frozen=True, slots=True)
class RankerTrial:
    ranker: Ranker
    found: tuple[Found, ...]


def scene_of_policy(policy_id: int) -> Scene:
    return Scene(offers.offer_of_policy(policy_id))


def scene_of_session(session: AgentSession) -> Scene:
    return Scene(offers.offer_of_session(session), read_loaded(session), session.turn)


def try_search(scene: Scene, call: SearchCall) -> Trial:
    """Raises InvalidInput as the search itself does."""
    started = time.perf_counter()
    query = parse_call(call)
    before = stand_in(scene.offer, scene.loaded)
    result = answer_search(before, query, call, explained=True)
    most = scene.offer.policy.max_loaded_tools
    after, added = load_matches(result, scene.loaded, turn=scene.turn, most=most)
    result = replace(result, loaded=added, took_ms=(time.perf_counter() - started) * 1000)
    kept = {tool.name for tool in after}
    sums_before, sums_after = before.tokens(), stand_in(scene.offer, after).tokens()
    return Trial(
        query=query,
        result=result,
        finding=_finding_of(scene, query, result),
        unloaded=tuple(tool.name for tool in scene.loaded if tool.name not in kept),
        added_tokens=tokens_of(sum(scene.offer.by_name[name].text.chars for name in added)),
        tokens_before=sums_before["sent"],
        tokens_after=sums_after["sent"],
        tokens_full=sums_before["full"],
    )


def compare_rankers(scene: Scene, call: SearchCall) -> list[RankerTrial]:
    """What each ranker finds; the policy's own comes first."""
    query, own = parse_call(call), Ranker(scene.offer.policy.ranker)
    rankers = (own, *(ranker for ranker in Ranker if ranker is not own))
    return [RankerTrial(ranker, _find(scene.with_ranker(ranker), query, call).found) for ranker in rankers]


def _finding_of(scene: Scene, query: Query, result: SearchResult) -> Finding:
    """An agent for whom nothing is deferred is told just that; a reader sees what a search would find."""
    if result.outcome == Outcome.INACTIVE:
        return _find(scene, query, result.call)
    return Finding(
        found=tuple(match.found for match in result.matches),
        missing=result.missing,
        unmatched_terms=result.unmatched_terms,
        did_you_mean=result.did_you_mean,
    )


def _find(scene: Scene, query: Query, call: SearchCall) -> Finding:
    most = most_results(call, scene.offer.policy)
    return find_tools(scene.offer, query, max_results=most, explained=True)
