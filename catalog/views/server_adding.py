"""Pages that add servers, from a pasted config or a form. The input is never shown again."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.text import capfirst
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_GET, require_POST

from catalog import tasks
from catalog.access.roles import Role, role_of, role_required
from catalog.console.pages import actor_of_request, wants_part
from catalog.domain import dialects
from catalog.domain.errors import Conflict, FieldProblem, InvalidInput, NotAllowed, OutdatedEdit
from catalog.domain.json_text import read_json
from catalog.domain.policy import DEFAULT_SLUG
from catalog.forms.servers import PasteForm, ServerForm
from catalog.selectors import servers
from catalog.services import config
from catalog.services.edits import Precondition
from catalog.views.edit_conflicts import VERSION


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
    """A dry run, unless `step` is import. A mistake in the text is shown in the dry run."""
    form = PasteForm(request.POST)
    wants_import = request.POST.get("step") == "import"
    if not form.is_valid():
        problems = [FieldProblem("", str(error)) for errors in form.errors.values() for error in errors]
        return _show_outcome(request, wants_import, problems=problems)
    try:
        plan = _import(request, form, dry_run=not wants_import)
    except InvalidInput as invalid:
        return _show_outcome(request, wants_import, problems=invalid.errors)
    except OutdatedEdit as outdated:
        changed = FieldProblem("", f"{outdated}. Paste it again")
        return _show_outcome(request, wants_import, problems=[changed])
    except NotAllowed:  # other missing permissions are shown beside the field, like mistakes
        refused = FieldProblem("command", "a server that runs a command can be added by admins only")
        return _show_outcome(request, wants_import, problems=[refused])
    if not wants_import:
        return _show_outcome(request, wants_import, plan=plan)
    tasks.wake_workers_on_commit()
    messages.success(request, _tell(plan))
    return redirect("server_list")


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


@sensitive_variables()
def _import(request: HttpRequest, form: PasteForm, *, dry_run: bool) -> config.ImportPlan:
    given = dialects.parse_config(read_json(form.cleaned_data["config"]))
    policy, version = form.cleaned_data["policy"], request.POST.get(VERSION, "")
    return config.import_config(
        config=given,
        policy_slug=policy,
        actor=actor_of_request(request),
        dry_run=dry_run,
        precondition=Precondition((version,), is_strict=True) if version else None,
    )


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


def _show_outcome(request: HttpRequest, wants_import: bool, **outcome: object) -> HttpResponse:
    """The part leaves the pasted text in the browser; a whole page is rendered without it."""
    if wants_part(request):
        return render(request, "catalog/_import_plan.html", outcome)
    return _show_page(request, status=422 if wants_import else 200, **outcome)


def _show_page(request: HttpRequest, *, status: int = 200, **outcome: object) -> HttpResponse:
    context = {"paste_form": PasteForm(), "server_form": _server_form(request), "section": "servers"}
    return render(request, "catalog/server_add.html", context | outcome, status=status)


def _tell(plan: config.ImportPlan) -> str:
    counts = [("added", plan.added), ("changed", plan.changed), ("unchanged", plan.unchanged)]
    told = ", ".join(f"{len(names)} {word}" for word, names in counts if names) or "no servers"
    return capfirst(f"{told}. New and changed ones are being asked for their tools.")
