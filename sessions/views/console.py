"""The test console: what a search finds and why, what it would load, and what the agent is answered."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_GET, require_POST

from catalog.access.roles import Role, role_required
from catalog.console.kept_forms import SAVED_FORM, KeptForm, take_form
from catalog.console.pages import actor_of_request, render_page, wants_part, way_back
from catalog.domain.choices import Ranker
from catalog.domain.errors import InvalidInput, Unavailable
from catalog.domain.query import Required
from catalog.selectors import saved_queries
from catalog.selectors.encoder import read_encoder_status
from catalog.selectors.hits import READINGS
from catalog.selectors.query_examples import read_examples
from catalog.services.saved_queries import version_of
from sessions.forms import ConsoleForm, ConsoleView, ReadAs
from sessions.selectors import session_page
from sessions.selectors.recent_searches import recent_searches
from sessions.selectors.searchers import Searcher, choose_searcher, list_searchers
from sessions.services import search_trials, supervision
from sessions.services.loading import SearchCall
from sessions.services.search_results import describe_result
from sessions.views.hit_rows import HitRow, make_rows
from sessions.views.rank_chart import draw_rank_chart
from sessions.views.recent import recent_queries, remember

STARTING_ROWS = 8


@require_GET
@role_required(Role.VIEWER)
def console(request: HttpRequest) -> HttpResponse:
    """Without a query, shows how to ask; mistakes are shown beside the query."""
    form = ConsoleForm(request.GET)
    searcher = choose_searcher(request.GET.get("as", ""))
    context: dict[str, object] = {
        "form": form,
        "view": form.asked_view(),
        "searcher": searcher,
        "searchers": partial(list_searchers, searcher),
        "saved_counts": saved_queries.count_saved,
    }
    status = 200
    if not form.asked_query().strip():
        context |= {
            "examples": read_examples(searcher.policy),
            "mine": recent_queries(request),
            "theirs": recent_searches(),
            "saved_rows": _starting_rows(searcher),
        }
    else:
        try:
            context |= _try_search(form, searcher, _take_typed(request, form, searcher))
        except (InvalidInput, Unavailable) as problem:
            context["problem"], status = problem, problem.status
        else:
            if form.asked_reading() is ReadAs.QUERY:
                remember(request, form.asked_query().strip())
    page, part = "sessions/console.html", "sessions/_console_results.html"
    return render_page(request, page, part, context, status=status)


def _starting_rows(searcher: Searcher) -> list[saved_queries.SavedRow]:
    rows = saved_queries.read_set(searcher.policy).rows
    return [row for row in rows if not row.is_resting][:STARTING_ROWS]


@require_POST
@role_required(Role.EDITOR)
def session_load(request: HttpRequest, session_id: uuid.UUID) -> HttpResponse:
    """Make the tried search in the agent's place: the only way the console loads a tool."""
    session = session_page.find_any_session(session_id)
    call = _make_call(ConsoleForm(request.POST))
    try:
        loaded = supervision.load_found(session=session, call=call, actor=actor_of_request(request))
    except (InvalidInput, Unavailable) as problem:
        messages.error(request, f"Nothing was loaded: {problem}.")
    else:
        count = len(loaded)
        messages.success(request, f"Loaded {count} tool{'' if count == 1 else 's'} into the session.")
    return redirect(way_back(request, otherwise=session.get_absolute_url()))


def _make_call(form: ConsoleForm) -> SearchCall:
    query, limit = form.asked_query(), form.asked_limit()
    if form.asked_reading() is ReadAs.PATTERN:
        return SearchCall(pattern=query, max_results=limit)
    return SearchCall(query=query, max_results=limit)


def _take_typed(request: HttpRequest, form: ConsoleForm, searcher: Searcher) -> KeptForm | None:
    """What was typed to save this query, where that was refused."""
    typed = None if wants_part(request) else take_form(request, SAVED_FORM)
    asked = (form.asked_query().strip(), searcher.policy.slug)
    return typed if typed and (str(typed["query"]).strip(), typed["policy"]) == asked else None


def _try_search(form: ConsoleForm, searcher: Searcher, typed: KeptForm | None) -> dict[str, object]:
    session, query = searcher.session, form.asked_query()
    trial_context = (
        search_trials.trial_of_policy(searcher.policy.pk)
        if session is None
        else search_trials.trial_of_session(session)
    )
    call, is_pattern = _make_call(form), form.asked_reading() is ReadAs.PATTERN
    ranker = form.asked_ranker() or Ranker(trial_context.offer.policy.ranker)
    trial = search_trials.try_search(trial_context.with_ranker(ranker), call)
    saved = None if is_pattern else saved_queries.find_saved_as(searcher.policy.pk, query)
    expected = list(typed["expected"]) if typed else saved.expected if saved else []
    rows = make_rows(trial, ranker, expected)
    context: dict[str, object] = {
        "trial": trial,
        "reading": READINGS[trial.query.form],
        "required": trial.query.required if isinstance(trial.query, Required) else (),
        "rows": rows,
        "ranker": ranker,
        "encoder": read_encoder_status() if ranker is Ranker.BM25F else None,
        "is_own_ranker": ranker == trial_context.offer.policy.ranker,
        "suggestions": _suggest(trial, query),
        "can_save": not is_pattern,
        "saved": saved,
        "saved_version": version_of(saved),
        "unfound": typed["others"] if typed else _name_unfound(expected, rows),
        "typed": typed,
    }
    match form.asked_view():
        case ConsoleView.RANKERS:
            context["chart"] = draw_rank_chart(search_trials.compare_rankers(trial_context, call))
        case ConsoleView.ANSWER:
            context["answer"] = describe_result(trial.result)
            context["call"] = _describe_call(call)
    return context


def _name_unfound(expected: Sequence[str], rows: Sequence[HitRow]) -> str:
    found = {row.tool.name for row in rows}
    return ", ".join(name for name in expected if name not in found)


def _describe_call(call: SearchCall) -> dict[str, object]:
    asked = {"query": call.query, "pattern": call.pattern, "max_results": call.max_results}
    return {name: value for name, value in asked.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Correction:
    """A similar word, and the query with the unknown word replaced by it."""

    term: str
    word: str
    query: str


def _suggest(trial: search_trials.Trial, query: str) -> list[Correction]:
    return [
        Correction(near.term, word, query.replace(near.term, word, 1))
        for near in trial.finding.did_you_mean
        for word in near.words
    ]
