"""Pages of tools: the list, one tool, and its settings."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from catalog import tasks
from catalog.access.roles import Role, role_required
from catalog.console.pages import actor_of_request, render_page, tell_done
from catalog.domain.choices import Loading
from catalog.domain.definitions import is_read_only
from catalog.domain.errors import InvalidInput, OutdatedEdit
from catalog.forms.filters import ToolFilterForm
from catalog.forms.tools import ToolSettingsForm
from catalog.models import Tool
from catalog.models.changes import Subject
from catalog.selectors import changes, policies, review, servers, similar_tools, tool_decisions, tools
from catalog.selectors.decisions import count_behind
from catalog.services import tool_settings
from catalog.services.tool_settings import READ_ONLY
from catalog.views import edit_conflicts
from catalog.views.edit_conflicts import EditConflict
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
        "server_names": servers.find_names,
        "policy_slugs": policies.policy_slugs,
        "tag_names": tools.tag_names,
    }
    return render_page(request, "catalog/tool_list.html", "catalog/_tool_table.html", context)


@require_GET
@role_required(Role.VIEWER)
def tool_detail(request: HttpRequest, qualified_name: str) -> HttpResponse:
    tool = tools.find_tool(qualified_name)
    return _show_tool(request, tool)


@require_POST
@role_required(Role.EDITOR)
def tool_settings_change(request: HttpRequest, qualified_name: str) -> HttpResponse:
    tool = tools.find_tool(qualified_name)
    form = ToolSettingsForm(request.POST)
    try:
        if form.is_valid() and _save_settings(request, tool, form):
            return redirect(tool)
    except OutdatedEdit as outdated:
        return _show_conflict(request, tools.find_tool(qualified_name), form, outdated)
    return _show_tool(request, tool, form, status=422)


def _save_settings(request: HttpRequest, tool: Tool, form: ToolSettingsForm) -> bool:
    """False where the engine refuses a value; the form then shows which. Raises OutdatedEdit."""
    try:
        change = tool_settings.change_tool(
            tool=tool,
            actor=actor_of_request(request),
            loading=Loading(form.cleaned_data["loading"]),
            keywords=form.words("keywords"),
            tags=form.words("tags"),
            hidden=form.cleaned_data["hidden"],
            read_only=form.read_only_mark(),
            if_unchanged=edit_conflicts.precondition_of_form(request),
        )
    except InvalidInput as invalid:
        form.tell(invalid)
        return False
    tasks.wake_workers_on_commit()
    if change is None:
        messages.info(request, "Nothing was different, so nothing was changed.")
    else:
        tell_done(request, f"Saved the settings of {tool.name}.", change)
    return True


def _show_conflict(
    request: HttpRequest, tool: Tool, form: ToolSettingsForm, outdated: OutdatedEdit
) -> HttpResponse:
    """The form with the current version, so that saving again is deliberate."""
    words = {"keywords": form.words("keywords"), "tags": sorted(form.words("tags"))}
    mark = form.read_only_mark()
    marked = {READ_ONLY: tool.read_only if mark is None else mark.mark}
    conflict = edit_conflicts.merge_form(
        request,
        outdated,
        wanted={**form.cleaned_data, **words, **marked},
        present=ToolSettingsForm.of(tool, tools.tags_by_tool([tool]).get(tool.pk, [])),
        label_of=_label_of,
    )
    merged = ToolSettingsForm(conflict.data)
    return _show_tool(request, tool, merged, conflict=conflict, status=409)


def _label_of(field: str) -> str:
    return "Read-only" if field == READ_ONLY else field.capitalize()


def _show_tool(
    request: HttpRequest,
    tool: Tool,
    form: ToolSettingsForm | None = None,
    *,
    conflict: EditConflict | None = None,
    status: int = 200,
) -> HttpResponse:
    """`form` is given where it has a mistake or a conflict to show."""
    tags = tools.tags_by_tool([tool]).get(tool.pk, [])
    opened_with = edit_conflicts.version_in(request, tool_settings.version_of(tool, tags))
    context = {
        "conflict": conflict,
        "version": conflict.version if conflict else opened_with,
        "tool": tool,
        "tags": tags,
        "form": form or ToolSettingsForm.of(tool, tags),
        "tree": grow_tree(tool.input_schema),
        "output_tree": grow_tree(tool.output_schema or {}),
        "review": review.describe_tools([tool])[0],
        "is_read_only": is_read_only(tool.read_only, tool.annotations),
        "says_read_only": is_read_only(None, tool.annotations),
        "verdicts": tool_decisions.explain_tool(tool),
        "issues": similar_tools.advise_tool(tool, look_alikes=similar_tools.find_similar_tools(tool)),
        "revisions": compare_revisions(tools.revisions_of(tool)),
        "changes": changes.changes_of(Subject.TOOL, tool.qualified_name),
    }
    return render(request, "catalog/tool_detail.html", context, status=status)
