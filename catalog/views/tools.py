"""Tools: the list, one tool, and what an editor sets on it."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from catalog import tasks
from catalog.access import Role, role_required
from catalog.domain.choices import Loading
from catalog.domain.errors import InvalidInput
from catalog.forms.filters import ToolFilterForm
from catalog.forms.tools import ToolSettingsForm
from catalog.models import Tool
from catalog.models.changes import Subject
from catalog.selectors import changes, policies, servers, tool_decisions, tools
from catalog.selectors.decisions import count_behind
from catalog.services import tool_settings
from catalog.views.pages import actor_of, render_page
from catalog.views.schema_tree import grow_tree
from catalog.views.word_diff import compare_revisions


@require_GET
@role_required(Role.VIEWER)
def tool_list(request: HttpRequest) -> HttpResponse:
    form = ToolFilterForm(request.GET)
    wanted = form.wanted()
    context = {
        "form": form,
        "wanted": wanted,
        "page": tools.tools_for_table(wanted, page=request.GET.get("page", "1")),
        "is_behind": count_behind() > 0,
        "server_names": servers.server_names,
        "policy_slugs": policies.policy_slugs,
        "tag_names": tools.tag_names,
    }
    return render_page(request, "catalog/tool_list.html", "catalog/_tool_table.html", context)


@require_GET
@role_required(Role.VIEWER)
def tool_detail(request: HttpRequest, qualified_name: str) -> HttpResponse:
    tool = tools.find_tool(qualified_name)
    return _show_tool(request, tool, ToolSettingsForm.of(tool))


@require_POST
@role_required(Role.EDITOR)
def tool_settings_change(request: HttpRequest, qualified_name: str) -> HttpResponse:
    tool = tools.find_tool(qualified_name)
    form = ToolSettingsForm(request.POST)
    if form.is_valid() and _save_settings(request, tool, form):
        messages.success(request, f"Saved the settings of {tool.name}.")
        return redirect(tool)
    return _show_tool(request, tool, form, status=422)


def _save_settings(request: HttpRequest, tool: Tool, form: ToolSettingsForm) -> bool:
    """False where the engine refuses a value; the form then says which."""
    try:
        tool_settings.change_tool(
            tool=tool,
            actor=actor_of(request),
            loading=Loading(form.cleaned_data["loading"]),
            keywords=form.keyword_list(),
            hidden=form.cleaned_data["hidden"],
        )
        tasks.wake_workers_on_commit()
    except InvalidInput as invalid:
        for problem in invalid.errors:
            form.add_error(problem.place if problem.place in form.fields else None, problem.message)
        return False
    return True


def _show_tool(
    request: HttpRequest, tool: Tool, form: ToolSettingsForm, *, status: int = 200
) -> HttpResponse:
    context = {
        "tool": tool,
        "tags": tools.tags_of([tool]).get(tool.pk, []),
        "form": form,
        "tree": grow_tree(tool.input_schema),
        "output_tree": grow_tree(tool.output_schema or {}),
        "verdicts": tool_decisions.explain_tool(tool),
        "revisions": compare_revisions(tools.revisions_of(tool)),
        "changes": changes.changes_of(Subject.TOOL, tool.qualified_name),
    }
    return render(request, "catalog/tool_detail.html", context, status=status)
