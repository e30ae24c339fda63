"""Pages that belong to no app: the overview, and the sign of life."""

from dataclasses import asdict

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_GET

from catalog.access import Role, role_required
from catalog.selectors import changes, health, servers, token_map, tools, totals
from catalog.services.changes import SYSTEM
from catalog.views.pages import render_page, wants_part


@login_not_required
@require_GET
def alive(request: HttpRequest) -> HttpResponse:
    """The process answers. Whether it can serve is said by `/api/v1/health`."""
    return HttpResponse("ok\n", content_type="text/plain")


@require_GET
@role_required(Role.VIEWER)
def overview(request: HttpRequest) -> HttpResponse:
    """The part is what changes while one looks: the sums, the health, what needs attention."""
    sums = totals.read_totals()
    context: dict[str, object] = {
        "totals": sums,
        "health": health.read_health(),
        "troubled": servers.servers_needing_attention(now=timezone.now()),
        "changes": changes.recent_changes(),
    }
    if not wants_part(request):
        tokens = token_map.read_token_map(sums)
        context |= {
            "token_map": tokens,
            "areas": [asdict(area) for area in tokens.areas],
            "largest": tools.largest_tools(),
            "is_new": not servers.has_servers_beside(SYSTEM.label),
        }
    page, part = "toolsearch_site/overview.html", "toolsearch_site/_overview_live.html"
    return render_page(request, page, part, context)
