"""Pages of saved queries: a set per policy, run as its agents search."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from catalog.access.roles import Role, role_required
from catalog.console.kept_forms import SAVED_FORM, keep_form, take_form
from catalog.console.pages import actor_of_request, render_page, tell_done, wants_part, way_back
from catalog.domain.errors import Conflict, InvalidInput, OutdatedEdit
from catalog.models import Policy, SavedQuery
from catalog.selectors import saved_queries as selectors
from catalog.selectors.policies import choose_policy, find_policy, policy_slugs
from catalog.services import saved_queries, saved_runs
from catalog.services.edits import Precondition


@require_GET
@role_required(Role.VIEWER)
def saved_list(request: HttpRequest) -> HttpResponse:
    """The policy asked for, else one with failing queries. The part is polled while a run is pending."""
    sets = selectors.sets_in_brief()
    failing = next((one.slug for one in sets if one.failing), "")
    policy = choose_policy(request.GET.get("policy", failing))
    context = {
        "set": selectors.read_set(policy) if policy else None,
        "sets": sets,
        "policy_slugs": policy_slugs,
        "new_version": saved_queries.version_of(None),
        "typed": None if wants_part(request) else take_form(request, SAVED_FORM),
    }
    return render_page(request, "catalog/saved_list.html", "catalog/_saved_set.html", context)


@require_POST
@role_required(Role.EDITOR)
def saved_save(request: HttpRequest) -> HttpResponse:
    policy = find_policy(request.POST.get("policy", ""))
    expected = [*request.POST.getlist("expected"), *request.POST.get("others", "").split(",")]
    query = request.POST.get("query", "")
    try:
        saved = saved_queries.save_query(
            policy=policy,
            query=query,
            expected=expected,
            actor=actor_of_request(request),
            precondition=Precondition.of_form(request.POST.get("version", "")),
        )
    except (InvalidInput, Conflict, OutdatedEdit) as problem:
        messages.error(request, f"Not saved: {problem}.")
        typed = {"query": query, "policy": policy.slug, "others": request.POST.get("others", "")}
        keep_form(request, SAVED_FORM, {**typed, "expected": request.POST.getlist("expected")})
    else:
        saved_runs.run_policy(policy)
        messages.success(request, f"Saved “{saved.query}”. {_say_result(saved)}")
    return redirect(way_back(request, otherwise=_address(policy)))


@require_POST
@role_required(Role.EDITOR)
def saved_delete(request: HttpRequest, saved_id: int) -> HttpResponse:
    saved = selectors.find_saved(saved_id)
    change = saved_queries.delete_query(saved=saved, actor=actor_of_request(request))
    saved_runs.run_policy(saved.policy)
    tell_done(request, f"Deleted “{saved.query}”.", change)
    return redirect(_address(saved.policy))


@require_POST
@role_required(Role.EDITOR)
def saved_run(request: HttpRequest) -> HttpResponse:
    policy = find_policy(request.POST.get("policy", ""))
    run = saved_runs.run_policy(policy)
    if run is None:
        messages.error(request, "Nothing was run: nothing is saved, or the policy is not decided yet.")
    else:
        messages.success(request, f"{run.passed} of {run.queries} pass.")
    return redirect(_address(policy))


def _say_result(saved: SavedQuery) -> str:
    result = selectors.latest_result(saved)
    if result is None:
        return "A worker runs it in a moment."
    if result.passed:
        return "It passes."
    return f"It fails: not every tool that it should find is among the first {selectors.PASS_WITHIN}."


def _address(policy: Policy) -> str:
    return reverse("saved_list", query={"policy": policy.slug})
