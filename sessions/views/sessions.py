"""Agents' conversations."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from catalog.access import Role, role_required
from catalog.views.pages import render_page
from sessions import selectors


@require_GET
@role_required(Role.VIEWER)
def session_list(request: HttpRequest) -> HttpResponse:
    context = {
        "page": selectors.sessions_for_table(page=request.GET.get("page", "1")),
        "address": request.build_absolute_uri("/api/v1"),
    }
    return render_page(request, "sessions/session_list.html", "sessions/_session_table.html", context)
