"""Pages that belong to no app: the overview and the error pages."""

import sys
from dataclasses import asdict

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET
from django.views.defaults import server_error as plain_server_error

from catalog.access.actors import SYSTEM
from catalog.access.roles import Role, role_of, role_required
from catalog.console.pages import render_page, wants_part
from catalog.console.seen import NOTHING_NEW, has_seen
from catalog.selectors import (
    changes,
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
from sessions.selectors import activity
from toolsearch_site import palette
from toolsearch_site.edge.unavailable import answer_outage, is_outage


@require_GET
@role_required(Role.VIEWER)
def overview(request: HttpRequest) -> HttpResponse:
    """The overview. Its part holds what changes: sums, health, servers that need attention."""
    sums = totals.read_totals()
    policy = policies.choose_policy(request.GET.get("policy", ""))
    context: dict[str, object] = {
        "totals": sums,
        "policy": policy,
        "cost": costs.read_cost(policy, sums),
        "health": health.read_health(),
        "troubled": servers.servers_needing_attention(now=timezone.now()),
        "changes": changes.recent_changes(with_keys=role_of(request.user) >= Role.ADMIN),
        "saved_counts": saved_queries.count_saved(),
    }
    if not wants_part(request):
        tokens = token_map.read_token_map(sums, policy)
        context |= {
            "policy_slugs": policies.policy_slugs(),
            "token_map": tokens,
            "areas": [asdict(area) for area in tokens.areas],
            "largest": tools.largest_tools(),
            "is_new": not servers.has_servers_beside(SYSTEM.label),
            **_describe(_read_activity(request)),
        }
    page, part = "toolsearch_site/overview.html", "toolsearch_site/_overview_live.html"
    return render_page(request, page, part, context)


def server_error(request: HttpRequest) -> HttpResponse:
    """The 500 page. Also used where reading the user has failed."""
    error = sys.exception()
    if error is not None and is_outage(error):
        return answer_outage(request, error)
    return plain_server_error(request)


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
