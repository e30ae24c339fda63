"""Trying a search: the answer an agent would get, with nothing loaded and nothing recorded."""

import pytest

from catalog.domain.choices import Ranker
from catalog.models import Policy
from sessions.models import AgentSession, LoadedTool, SearchEvent, SearchEventOutcome
from sessions.offers.states import read_session_state
from sessions.services import search_trials, write_behind
from sessions.services.loading import SearchCall, search_and_load
from tests.harness.rows import make_key, make_policy, make_server, make_session, make_tool

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def catalog() -> None:
    server = make_server(name="paint")
    for name in ("mix", "pour", "stir"):
        make_tool(server=server, name=f"{name}_paint", description=f"To {name} paint of any colour.")


def session_of(**policy: object) -> AgentSession:
    return make_session(key=make_key(policy=make_policy(**policy)))


def test_same_answer_as_the_agents_own_search() -> None:
    session = session_of()
    call = SearchCall(query="paint", max_results=2)
    tried = search_trials.try_search(search_trials.trial_of_session(session), call).result
    real = search_and_load(session=session, call=call)
    assert (tried.outcome, tried.loaded, tried.matches[0].found.tool) == (
        real.outcome,
        real.loaded,
        real.matches[0].found.tool,
    )


def test_nothing_is_loaded_recorded_or_touched() -> None:
    session = session_of()
    before = AgentSession.objects.values().get(pk=session.pk)
    search_trials.try_search(search_trials.trial_of_session(session), SearchCall(query="paint"))
    write_behind.flush()
    assert not LoadedTool.objects.exists()
    assert not SearchEvent.objects.exists()
    assert AgentSession.objects.values().get(pk=session.pk) == before


def test_tokens_are_what_the_session_pays_afterwards() -> None:
    session = session_of()
    trial = search_trials.try_search(search_trials.trial_of_session(session), SearchCall(query="stir"))
    assert trial.tokens_before == read_session_state(session).resolved.tokens()["sent"]
    search_and_load(session=session, call=SearchCall(query="stir"))
    assert trial.tokens_after == read_session_state(session).resolved.tokens()["sent"]


def test_what_would_have_to_go_is_named() -> None:
    session = session_of(max_loaded_tools=1)
    search_and_load(session=session, call=SearchCall(query="select:mix_paint"))
    trial = search_trials.try_search(
        search_trials.trial_of_session(session), SearchCall(query="select:stir_paint")
    )
    assert trial.result.loaded == ("mcp__paint__stir_paint",)
    assert trial.unloaded == ("mcp__paint__mix_paint",)


def test_inactive_search_still_shows_what_it_would_find() -> None:
    trial_context = search_trials.trial_of_policy(make_policy(mode="off").pk)
    trial = search_trials.try_search(trial_context, SearchCall(query="stir"))
    assert trial.result.outcome is SearchEventOutcome.INACTIVE
    assert trial.result.loaded == ()
    assert [found.tool.text.tool for found in trial.finding.found] == ["stir_paint"]


def test_other_ranker_is_tried_without_touching_the_policy() -> None:
    policy = Policy.objects.get(slug="default")
    trial_context = search_trials.trial_of_policy(policy.pk)
    assert trial_context.with_ranker(Ranker.BM25F) is trial_context
    other = search_trials.try_search(trial_context.with_ranker(Ranker.OVERLAP), SearchCall(query="stir"))
    assert other.finding.found[0].hit.score == 3.0
    assert trial_context.offer.policy.ranker is Ranker.BM25F


def test_session_brings_its_own_tools_along() -> None:
    session = session_of(defer_builtins=True)
    session.builtin_tools = [{"name": "stir_coffee", "description": "At the desk.", "inputSchema": {}}]
    session.save()
    trial = search_trials.try_search(search_trials.trial_of_session(session), SearchCall(query="coffee"))
    assert trial.finding.found[0].tool.name == "stir_coffee"
