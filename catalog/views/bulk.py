"""Bulk editing of tools: the selected ones, or all that match a filter. The URL says which."""

from hashlib import sha256

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods
from django_htmx.middleware import HtmxDetails

from catalog import tasks
from catalog.access.roles import Role, role_of, role_required
from catalog.console.pages import actor_of_request, render_page, tell_done
from catalog.domain.errors import InvalidInput
from catalog.forms.bulk import BulkForm
from catalog.forms.filters import ToolFilterForm
from catalog.models import Tool
from catalog.selectors import tools
from catalog.selectors.policy_flips import preview_tools
from catalog.selectors.tools import ToolFilter
from catalog.services import bulk

ALL, TICKED = "all", "tool"
NAMES_SHOWN = 12


@require_http_methods(["GET", "POST"])
@role_required(Role.EDITOR)
def bulk_edit(request: HttpRequest) -> HttpResponse:
    """POST previews the form's effect; with `step` apply it makes the change.

    A preview that htmx sends while the form is being submitted carries the pressed button, too.
    """
    wanted = ToolFilterForm(request.GET).wanted()
    tool_ids = _choose(request.GET, wanted)
    if not tool_ids:
        messages.error(request, "Select the tools to edit first.")
        return redirect(_list_address(request.GET))
    may_mark = role_of(request.user) >= Role.ADMIN
    if request.method != "POST":
        return _show(request, tool_ids, BulkForm(may_mark=may_mark))
    form = BulkForm(request.POST, may_mark=may_mark)
    if HtmxDetails(request) or request.POST.get("step") != "apply":
        return _show(request, tool_ids, form)
    if request.POST.get("chosen") not in (None, _code_of(tool_ids)):
        messages.error(request, "Nothing was changed: other tools match by now. These are the present ones.")
        return _show(request, tool_ids, form, status=422)
    if form.is_valid() and _apply(request, tool_ids, form):
        return redirect(_list_address(request.GET))
    return _show(request, tool_ids, form, status=422)


def _choose(query: QueryDict, wanted: ToolFilter) -> list[int]:
    if ALL in query:
        return list(tools.matching_tools(wanted).values_list("pk", flat=True))
    ticked = [int(tool_id) for tool_id in query.getlist(TICKED) if tool_id.isdecimal()]
    return list(Tool.objects.filter(pk__in=ticked[: bulk.BATCH_IDS]).values_list("pk", flat=True))


def _code_of(tool_ids: list[int]) -> str:
    """Of which tools they are: a form applies to those that it was shown with."""
    return sha256(repr(sorted(tool_ids)).encode()).hexdigest()


def _apply(request: HttpRequest, tool_ids: list[int], form: BulkForm) -> bool:
    """False where the engine refuses; the form then shows why."""
    try:
        change = bulk.change_tools(tool_ids=tool_ids, edit=form.edit(), actor=actor_of_request(request))
    except InvalidInput as invalid:
        form.tell(invalid)
        return False
    if change is None:
        messages.info(request, "Nothing was different, so nothing was changed.")
        return True
    tasks.wake_workers_on_commit()
    tell_done(request, f"Changed {change.name}.", change)
    return True


def _show(request: HttpRequest, tool_ids: list[int], form: BulkForm, *, status: int = 200) -> HttpResponse:
    chosen = Tool.objects.filter(pk__in=tool_ids[:NAMES_SHOWN]).select_related("server")
    context: dict[str, object] = {
        "form": form,
        "count": len(tool_ids),
        "names": [tool.qualified_name for tool in chosen.only("qualified_name", "server__name")],
        "chosen": _code_of(tool_ids),
        "left_out": len(tool_ids[NAMES_SHOWN:]),
        "back": _list_address(request.GET),
        "section": "tools",
    }
    if form.is_valid():
        edit = form.edit()
        context["edit"] = edit
        if edit.flips_tools:
            context["flips"] = preview_tools(tool_ids=tool_ids, loading=edit.loading, hidden=edit.hidden)
    return render_page(
        request, "catalog/bulk_edit.html", "catalog/_bulk_preview.html", context, status=status
    )


def _list_address(query: QueryDict) -> str:
    """The filtered list, without the ticked tools."""
    kept = query.copy()
    for name in (ALL, TICKED):
        kept.pop(name, None)
    return f"{reverse('tool_list')}?{kept.urlencode()}" if kept else reverse("tool_list")
