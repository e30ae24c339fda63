"""The page that belongs to no app: the overview."""

from dataclasses import asdict

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_GET

from catalog.access import Role, role_required
from catalog.selectors import changes, costs, health, policies, servers, token_map, tools, totals
from catalog.services.changes import SYSTEM
from catalog.views.pages import render_page, wants_part


@require_GET
@role_required(Role.VIEWER)
def overview(request: HttpRequest) -> HttpResponse:
    """The part is what changes while one looks: the sums, the health, what needs attention."""
    sums = totals.read_totals()
    policy = policies.choose_policy(request.GET.get("policy", ""))
    context: dict[str, object] = {
        "totals": sums,
        "policy": policy,
        "cost": costs.read_cost(policy, sums),
        "health": health.read_health(),
        "troubled": servers.servers_needing_attention(now=timezone.now()),
        "changes": changes.recent_changes(),
    }
    if not wants_part(request):
        tokens = token_map.read_token_map(sums, policy)
        context |= {
            "policy_slugs": policies.policy_slugs(),
            "token_map": tokens,
            "areas": [asdict(area) for area in tokens.areas],
            "largest": tools.largest_tools(),
            "is_new": not servers.has_servers_beside(SYSTEM.label),
        }
    page, part = "toolsearch_site/overview.html", "toolsearch_site/_overview_live.html"
    return render_page(request, page, part, context)
