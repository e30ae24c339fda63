"""Pages of sessions: the list and the live page of one."""

import uuid

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from catalog.access.roles import Role, role_required
from catalog.console.pages import actor_of_request, render_page, wants_part
from catalog.console.seen import NOTHING_NEW, STOP_ASKING, has_seen
from catalog.domain.errors import NotFound
from catalog.selectors import policies
from sessions.forms import SessionFilterForm
from sessions.selectors import session_page, session_table
from sessions.selectors.timeline import read_place
from sessions.services import supervision


@require_GET
@role_required(Role.VIEWER)
def session_list(request: HttpRequest) -> HttpResponse:
    form, now = SessionFilterForm(request.GET), timezone.now()
    wanted = form.wanted()
    page = session_table.sessions_for_table(wanted, now=now, page=request.GET.get("page", "1"))
    stamp = session_table.stamp_table(page, now=now)
    if has_seen(request, stamp):
        return HttpResponse(status=NOTHING_NEW)
    context = {
        "page": page,
        "stamp": stamp,
        "form": form,
        "wanted": wanted,
        "policy_slugs": policies.policy_slugs,
        "keys": session_table.keys_to_choose,
        "address": request.build_absolute_uri("/api/v1"),
    }
    return render_page(request, "sessions/session_list.html", "sessions/_session_table.html", context)


@require_GET
@role_required(Role.VIEWER)
def session_detail(request: HttpRequest, session_id: uuid.UUID) -> HttpResponse:
    """The part is polled every two seconds and costs two short reads while nothing happens."""
    try:
        watched = session_page.watch(session_id, now=timezone.now())
    except NotFound:
        if not wants_part(request):
            raise
        return render(request, "sessions/_session_gone.html", status=STOP_ASKING)
    if has_seen(request, watched.stamp):
        return HttpResponse(status=NOTHING_NEW)
    before = read_place(request.GET.get("before", ""))  # any other text means the newest part
    context = {
        "shown": session_page.read_session_page(watched, before=before),
        "is_older": before is not None,
    }
    return render_page(request, "sessions/session_detail.html", "sessions/_session_live.html", context)


@require_POST
@role_required(Role.EDITOR)
def session_reset(request: HttpRequest, session_id: uuid.UUID) -> HttpResponse:
    session = session_page.find_any_session(session_id)
    supervision.reset_session(session=session, actor=actor_of_request(request))
    messages.success(request, "The session is reset: every tool is decided again, and nothing is discovered.")
    return redirect(session)


@require_POST
@role_required(Role.EDITOR)
def session_unload(request: HttpRequest, session_id: uuid.UUID) -> HttpResponse:
    """Unload the tools named, or all that searches loaded."""
    session = session_page.find_any_session(session_id)
    names = None if request.POST.get("all") else request.POST.getlist("name")
    gone = supervision.unload_tools(session=session, names=names, actor=actor_of_request(request))
    if gone:
        messages.success(request, f"Unloaded {gone} tool{'s' if gone > 1 else ''}.")
    else:
        messages.error(request, "Nothing was unloaded: the session had no such tool any more.")
    return redirect(session)


@require_POST
@role_required(Role.ADMIN)
def session_delete(request: HttpRequest, session_id: uuid.UUID) -> HttpResponse:
    session = session_page.find_any_session(session_id)
    supervision.delete_session(session=session, actor=actor_of_request(request))
    messages.success(request, f"The session {session} is deleted.")
    return redirect("session_list")
