"""The change record, and undo."""

import re
from functools import partial

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from catalog import tasks
from catalog.access.roles import Role, role_of, role_required
from catalog.console.pages import actor_of_request, render_page, way_back
from catalog.domain.errors import Conflict
from catalog.forms.filters import ChangeFilterForm
from catalog.models import Change
from catalog.models.changes import Subject
from catalog.selectors import changes
from catalog.services.undo import can_undo, undo_change


@require_GET
@role_required(Role.VIEWER)
def change_list(request: HttpRequest) -> HttpResponse:
    form = ChangeFilterForm(request.GET)
    wanted = form.wanted(now=timezone.now())
    is_admin = role_of(request.user) >= Role.ADMIN
    page = changes.changes_for_table(wanted, page=request.GET.get("page", "1"), with_keys=is_admin)
    context = {
        "form": form,
        "wanted": wanted,
        "page": page,
        "undoable": {row.change.pk for row in page.rows if can_undo(row.change, Role.EDITOR)},
        "undoable_by_admins": {row.change.pk for row in page.rows if can_undo(row.change)},
        "actors": partial(changes.known_actors, with_keys=is_admin),
        "signed": changes.count_signed,
    }
    return render_page(request, "catalog/change_list.html", "catalog/_change_table.html", context)


@require_POST
@role_required(Role.EDITOR)
def change_undo(request: HttpRequest, change_id: int) -> HttpResponse:
    change = changes.find_change(change_id)
    try:
        restored = undo_change(change=change, actor=actor_of_request(request))
    except Conflict as conflict:
        messages.error(request, f"Nothing was undone: {conflict}.")
    else:
        tasks.wake_workers_on_commit()
        left = "" if restored == change.name else f" The others of {change.name} have changed since."
        messages.success(request, f"Undone. {_say_restored(change, restored)}{left}")
    return redirect(way_back(request, otherwise="change_list"))


def _say_restored(change: Change, restored: str) -> str:
    """A change of many tools is named by their number, any other by the name of its subject."""
    if change.subject == Subject.TOOL and re.fullmatch(r"[\d,]+ tools?", restored):
        return f"{restored} {'is as it was' if restored == '1 tool' else 'are as they were'} before."
    return f"{change.get_subject_display()} {restored} is as it was before."
