"""The sessions that loaded a tool: a card on the tool's page, and a page of its own without JavaScript."""

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_GET
from django_htmx.middleware import HtmxDetails

from catalog.access.roles import Role, role_required
from catalog.console.pages import render_page
from catalog.selectors import tools
from sessions.selectors.tool_use import past_uses, sessions_with_tool


@require_GET
@role_required(Role.VIEWER)
def tool_sessions(request: HttpRequest, qualified_name: str) -> HttpResponse:
    tool = tools.find_tool(qualified_name)
    page = sessions_with_tool(tool.qualified_name, now=timezone.now(), page=request.GET.get("page", "1"))
    htmx = HtmxDetails(request)
    context = {
        "tool": tool,
        "page": page,
        "past": past_uses(tool.qualified_name),
        "is_card": bool(htmx) and not htmx.boosted,
    }
    return render_page(request, "sessions/tool_sessions.html", "sessions/_tool_sessions.html", context)
