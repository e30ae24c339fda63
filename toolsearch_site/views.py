"""Pages that belong to no app: the overview and the error pages."""

import sys
from dataclasses import asdict

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST
from django.views.defaults import server_error as plain_server_error

from catalog.access.roles import Role, role_of, role_required
from catalog.console.pages import render_page, wants_part
from catalog.console.seen import NOTHING_NEW, has_seen
from catalog.selectors import (
    changes,
    demo,
    health,
    policies,
    saved_queries,
    servers,
    token_map,
    tools,
    totals,
)
from sessions.domain.activity_chart import Period
from sessions.offers import costs
from sessions.offers.versions import read_versions
from sessions.selectors import activity
from sessions.selectors.stamps import stamp_of
from toolsearch_site import palette
from toolsearch_site.edge.unavailable import answer_outage, is_outage
from toolsearch_site.first_steps import Step, dismiss_step, read_steps


@require_GET
@role_required(Role.VIEWER)
def overview(request: HttpRequest) -> HttpResponse:
    """The overview. Its part holds what changes: sums, health, servers that need attention; and the first
    steps, the map and the tables where they have changed since the stamp that the page shows.
    """
    sums = totals.read_totals()
    policy = policies.choose_policy(request.GET.get("policy", ""))
    user = request.user
    assert isinstance(user, User)
    cost, steps, demo_state = costs.read_cost(policy, sums), read_steps(user), demo.read_demo()
    versions = read_versions(policy.pk) if policy else None
    stamp = stamp_of(sums, cost, steps, demo_state, versions)
    context: dict[str, object] = {
        "totals": sums,
        "policy": policy,
        "cost": cost,
        "stamp": stamp,
        "health": health.read_health(),
        "troubled": servers.servers_needing_attention(now=timezone.now()),
        "changes": changes.recent_changes(with_keys=role_of(request.user) >= Role.ADMIN),
        "saved_counts": saved_queries.count_saved(),
    }
    is_part = wants_part(request)
    if not is_part or request.GET.get("seen") != stamp:
        tokens = token_map.read_token_map(sums, policy)
        context |= {
            "has_news": True,
            "token_map": tokens,
            "areas": [asdict(area) for area in tokens.areas],
            "largest": tools.largest_tools(),
            "steps": steps,
            "demo": demo_state,
        }
    if not is_part:
        context |= {"policy_slugs": policies.policy_slugs(), **_describe(_read_activity(request))}
    page, part = "toolsearch_site/overview.html", "toolsearch_site/_overview_live.html"
    return render_page(request, page, part, context)


def server_error(request: HttpRequest) -> HttpResponse:
    """The 500 page. Also used where reading the user has failed."""
    error = sys.exception()
    if error is not None and is_outage(error):
        return answer_outage(request, error)
    return plain_server_error(request)


@require_POST
@role_required(Role.VIEWER)
def step_dismiss(request: HttpRequest) -> HttpResponse:
    """Dismiss a first step for the person who asks."""
    asked = request.POST.get("step", "")
    if asked in set(Step) and isinstance(request.user, User):
        dismiss_step(request.user, Step(asked))
    return redirect("overview")


@require_GET
@role_required(Role.VIEWER)
def overview_activity(request: HttpRequest) -> HttpResponse:
    """The activity card, polled: failed searches are read only when something has happened."""
    if not wants_part(request):
        return redirect(reverse("overview", query={"period": request.GET.get("period", "")}))
    shown = _read_activity(request)
    if has_seen(request, shown.stamp):
        return HttpResponse(status=NOTHING_NEW)
    return render(request, "toolsearch_site/_overview_activity.html", _describe(shown))


@require_GET
@role_required(Role.VIEWER)
def find(request: HttpRequest) -> HttpResponse:
    """What the command palette lists for the words typed so far."""
    text = request.GET.get("q", "")
    if not wants_part(request):
        return redirect(reverse("tool_list", query={"q": text}))
    groups = palette.find(text, role_of(request.user))
    context = {"groups": groups, "count": sum(len(group.items) for group in groups), "text": text.strip()}
    return render(request, "toolsearch_site/_palette_results.html", context)


def _read_activity(request: HttpRequest) -> activity.Activity:
    asked = request.GET.get("period", "")
    period = Period(asked) if asked in set(Period) else Period.DAY
    return activity.read_activity(period, now=timezone.now())


def _describe(shown: activity.Activity) -> dict[str, object]:
    misses = activity.read_misses(shown.period, now=timezone.now()) if shown.misses else []
    return {"activity": shown, "misses": misses, "periods": list(Period)}
