"""The loading switch in a tool's row, with an undo; the row's decision follows."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods
from django_htmx.middleware import HtmxDetails

from catalog import tasks
from catalog.access.roles import Role, require_role, role_required
from catalog.console.pages import actor_of_request, tell_done, wants_part, way_back
from catalog.domain.choices import Loading
from catalog.domain.errors import InvalidInput, OutdatedEdit
from catalog.forms.tools import LOADING_WORDS
from catalog.models import Tool
from catalog.selectors import policies, tool_decisions, tools
from catalog.selectors.decisions import count_behind
from catalog.services import tool_settings
from catalog.views import edit_conflicts

# What is said after a choice, behind the tool's name.
LOADING_DONE = {
    Loading.INHERIT: "follows its server and policy again.",
    Loading.ALWAYS: "always loads now.",
    Loading.DEFER: "is deferred now: it waits for a search.",
}


@require_http_methods(["GET", "POST"])
@role_required(Role.VIEWER)
def tool_loading(request: HttpRequest, qualified_name: str) -> HttpResponse:
    """POST sets it; GET returns the decision alone and is polled until a worker has made it."""
    tool = tools.find_tool(qualified_name)
    if request.method == "POST":
        require_role(request.user, Role.EDITOR)
        tool = _set_loading(request, tool, request.POST.get("loading", ""))
    if not wants_part(request):
        return redirect(way_back(request, otherwise=tool.get_absolute_url()))
    part = "catalog/_tool_loading_set.html" if request.method == "POST" else "catalog/_tool_decision.html"
    return render(request, part, _row_context(request, tool))


def _set_loading(request: HttpRequest, tool: Tool, word: str) -> Tool:
    if word not in LOADING_WORDS:
        raise InvalidInput.at("loading", "must be inherit, always or defer")
    if tool.loading == word:
        return tool
    try:
        change = tool_settings.change_tool(
            tool=tool,
            actor=actor_of_request(request),
            loading=Loading(word),
            if_unchanged=edit_conflicts.precondition_of_form(request),
        )
    except OutdatedEdit as outdated:
        meanwhile = edit_conflicts.describe_conflict(
            outdated, lambda value: LOADING_WORDS[Loading(str(value))].lower()
        )
        messages.error(
            request, f"Loading of {tool.name} was not set: {meanwhile}. Choose again to replace it."
        )
        return tools.find_tool(tool.qualified_name)
    tasks.wake_workers_on_commit()
    tell_done(request, f"{tool.name} {LOADING_DONE[Loading(word)]}", change)
    return tools.find_tool(tool.qualified_name)


def _row_context(request: HttpRequest, tool: Tool) -> dict[str, object]:
    given = request.POST if request.method == "POST" else request.GET
    policy = policies.choose_policy(given.get("policy", ""))
    return {
        "tool": tool,
        "policy": policy,
        "verdict": tool_decisions.verdicts_of(policy, [tool]).get(tool.pk),
        "is_deciding": count_behind() > 0,
        "back": HtmxDetails(request).current_url_abs_path,
    }
