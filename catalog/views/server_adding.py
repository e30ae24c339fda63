"""Pages that add servers, from a config or a form, and the result of an import.

What was given is never shown again.
"""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_GET, require_POST

from catalog import documents, tasks
from catalog.access.roles import Role, role_of, role_required
from catalog.console.pages import actor_of_request, render_page, wants_part
from catalog.domain import dialects
from catalog.domain.dialects import Config
from catalog.domain.errors import Conflict, FieldProblem, InvalidInput, OutdatedEdit
from catalog.domain.limits import CONFIG_TEXT_BYTES
from catalog.domain.policy import DEFAULT_SLUG
from catalog.forms.servers import PasteForm, ServerForm
from catalog.sealing import SealBroken, Sealer
from catalog.selectors import imports, policies, servers
from catalog.services import config, import_plans
from catalog.services.edits import Precondition
from catalog.views.edit_conflicts import VERSION

REFUSED_TOLD = 5
PLAN_ROWS = 200  # each with its box to tick: a form has at most 1,000 fields


@never_cache
@require_GET
@role_required(Role.EDITOR)
def server_add(request: HttpRequest) -> HttpResponse:
    return _show_page(request)


@sensitive_post_parameters()
@sensitive_variables()
@never_cache
@require_POST
@role_required(Role.EDITOR)
def server_paste(request: HttpRequest) -> HttpResponse:
    """The plan, unless `step` is import. A text that cannot be read is told in its place."""
    form = PasteForm(request.POST, request.FILES)
    wants_import = request.POST.get("step") == "import"
    if not form.is_valid():
        problems = [FieldProblem("", str(error)) for errors in form.errors.values() for error in errors]
        return _show_outcome(request, wants_import, problems=problems)
    try:
        content = form.content() or _unseal(request, form.cleaned_data["sealed"])
        given = documents.read_config_text(content)
        if wants_import:
            return _import(request, given, form.cleaned_data["policy"])
        plan = _plan(request, given, form.cleaned_data["policy"])
    except InvalidInput as invalid:
        return _show_outcome(request, wants_import, problems=invalid.errors)
    except OutdatedEdit as outdated:
        changed = FieldProblem("", f"{outdated}. Look at the plan again")
        return _show_outcome(request, wants_import, problems=[changed])
    return _show_plan(request, plan, content, given)


@sensitive_post_parameters()
@sensitive_variables()
@never_cache
@require_POST
@role_required(Role.EDITOR)
def server_create(request: HttpRequest) -> HttpResponse:
    form = _server_form(request, request.POST)
    if form.is_valid() and _create(request, form):
        messages.success(request, f"Added {form.cleaned_data['name']}; it is being asked for its tools.")
        return redirect(servers.find_server(form.cleaned_data["name"]))
    return _show_page(request, server_form=form, status=422)


@require_GET
@role_required(Role.VIEWER)
def import_result(request: HttpRequest) -> HttpResponse:
    """The servers of an import, polled until all of them have answered or failed."""
    context = {
        "result": imports.read_import(request.GET.get("servers", "")),
        "policy": policies.choose_policy(request.GET.get("policy", "")),
        "section": "servers",
    }
    return render_page(request, "catalog/import_result.html", "catalog/_import_result.html", context)


@sensitive_variables()
def _import(request: HttpRequest, given: Config, policy: str) -> HttpResponse:
    version = request.POST.get(VERSION, "")
    plan = config.import_config(
        config=given,
        policy_slug=policy,
        actor=actor_of_request(request),
        precondition=Precondition((version,), is_strict=True) if version else None,
        only=request.POST.getlist("take") if "with_ticks" in request.POST else None,
        values=_given_values(request),
    )
    tasks.wake_workers_on_commit()
    if plan.refused:
        told = "; ".join(f"{one.name}: {one.reason}" for one in plan.refused[:REFUSED_TOLD])
        messages.error(request, f"{len(plan.refused)} not imported. {told}")
    if not plan.moving and plan.policy_changes:
        messages.success(request, f"The search settings of the file are those of {policy} now.")
        return redirect("policy_detail", policy)
    if not plan.moving:
        messages.success(request, _tell_unmoved(len(plan.unchanged)))
        return redirect("server_list")
    query = {"servers": imports.write_ids((*plan.added, *plan.changed)), "policy": policy}
    return redirect(reverse("import_result", query=query))


@sensitive_variables()
def _plan(request: HttpRequest, given: Config, policy: str) -> import_plans.ImportPlan:
    return config.plan_import(config=given, policy_slug=policy, actor=actor_of_request(request))


@sensitive_variables()
def _given_values(request: HttpRequest) -> dict[tuple[str, str], str]:
    """What was typed for placeholders and variables, by server and name."""
    named = zip(request.POST.getlist("given_server"), request.POST.getlist("given_name"), strict=False)
    return dict(zip(named, request.POST.getlist("given_value"), strict=False))


@sensitive_variables()
def _unseal(request: HttpRequest, sealed: str) -> str:
    if not sealed:
        raise InvalidInput.at("", "Paste a config, or choose a file")
    try:
        return str(_sealer().unseal(sealed, context=_context(request))["text"])
    except SealBroken:
        raise InvalidInput.at("", "What was pasted is not kept any more: paste it again") from None


def _sealer() -> Sealer:
    return Sealer(settings.ENCRYPTION_KEYS)


def _context(request: HttpRequest) -> str:
    return f"import:{request.user.pk}"


@sensitive_variables()
def _create(request: HttpRequest, form: ServerForm) -> bool:
    """False where the engine refuses; the form then shows why."""
    try:
        given = dialects.parse_config(form.document())
        config.add_servers(config=given, policy_slug=DEFAULT_SLUG, actor=actor_of_request(request))
    except Conflict:
        form.add_error("name", "There is a server of that name already.")
        return False
    except InvalidInput as invalid:
        form.tell(invalid)
        return False
    tasks.wake_workers_on_commit()
    return True


def _server_form(request: HttpRequest, *given: Any) -> ServerForm:
    return ServerForm(*given, may_run_commands=role_of(request.user) >= Role.ADMIN)


@sensitive_variables()
def _show_plan(
    request: HttpRequest, plan: import_plans.ImportPlan, content: str | bytes, given: Config
) -> HttpResponse:
    """The part leaves the pasted text in the browser; a whole page keeps it sealed, for the next step."""
    rows = sorted(plan.servers, key=lambda row: row.action is not import_plans.ImportAction.REFUSE)
    is_long = len(rows) > PLAN_ROWS
    sealed = ""
    if not wants_part(request) and len(content) <= CONFIG_TEXT_BYTES:
        text = documents.decode_text(content)
        sealed = _sealer().seal({"text": text}, context=_context(request))
    return _show_outcome(
        request,
        False,
        plan=plan,
        rows=rows[:PLAN_ROWS] if is_long else plan.servers,
        more=max(0, len(rows) - PLAN_ROWS),
        labels=given.labels,
        sealed=sealed,
        is_kept=bool(sealed) or wants_part(request),
    )


def _show_outcome(request: HttpRequest, wants_import: bool, **outcome: object) -> HttpResponse:
    if wants_part(request):
        return render(request, "catalog/_import_plan.html", outcome)
    return _show_page(request, status=422 if wants_import else 200, **outcome)


def _show_page(request: HttpRequest, *, status: int = 200, **outcome: object) -> HttpResponse:
    context = {"paste_form": PasteForm(), "server_form": _server_form(request), "section": "servers"}
    return render(request, "catalog/server_add.html", context | outcome, status=status)


def _tell_unmoved(count: int) -> str:
    told = "1 server of the file is" if count == 1 else f"{count} servers of the file are"
    return f"Nothing changed: {told} here already."
