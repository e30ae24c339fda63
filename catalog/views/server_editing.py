"""Pages that change a server: its settings, deferLoading with a preview, enabling, interval, deletion."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST

from catalog import tasks
from catalog.access.roles import Role, role_of, role_required
from catalog.console.pages import actor_of_request, render_page, tell_done
from catalog.console.spans import write_span
from catalog.domain.choices import Kind
from catalog.domain.errors import InvalidInput, NotAllowed, OutdatedEdit
from catalog.forms.server_edit import PairsField, ServerEditForm
from catalog.forms.servers import DEFER_VALUES, DEFER_WORDS, IntervalForm
from catalog.models import Server
from catalog.selectors import policy_flips, servers
from catalog.services import config
from catalog.services import servers as server_services
from catalog.views import edit_conflicts
from catalog.views.edit_conflicts import EditConflict, FieldConflict
from catalog.views.servers import show_server

# What is said after a choice, behind the server's name.
DEFER_DONE = {
    "inherit": "follows each policy again.",
    "load": "loads up front now.",
    "defer": "is deferred now: its tools wait for a search.",
}
# The form's names of what versions of a server are made from.
FORM_NAMES = {
    "timeoutSeconds": "timeout_seconds",
    "secretArgs": "secret_args",
    "keepsNoState": "keeps_no_state",
}


@sensitive_post_parameters()
@sensitive_variables()
@never_cache
@require_http_methods(["GET", "POST"])
@role_required(Role.EDITOR)
def server_edit(request: HttpRequest, name: str) -> HttpResponse:
    """The form for everything that was given. `field` names the one to begin with."""
    server = servers.find_server(name)
    if request.method != "POST":
        opened, begin = make_edit_form(request, server), request.GET.get("field", "")
        if begin in opened.fields:
            opened.fields[begin].widget.attrs["autofocus"] = True
        return _show_editor(request, server, opened)
    form = make_edit_form(request, server, request.POST)
    try:
        if form.is_valid() and _save(request, server, form):
            return redirect(server)
    except OutdatedEdit as outdated:
        return _show_conflict(request, servers.find_server(name), form, outdated)
    return _show_editor(request, server, form, status=422)


@sensitive_variables()
def make_edit_form(request: HttpRequest, server: Server, *given: Any) -> ServerEditForm:
    return ServerEditForm(
        *given,
        server=server,
        entry=server_services.try_read_entry(server),
        is_admin=role_of(request.user) >= Role.ADMIN,
    )


@sensitive_variables()
def _save(request: HttpRequest, server: Server, form: ServerEditForm) -> bool:
    """False where the engine refuses; the form then shows why. Raises OutdatedEdit."""
    values = form.cleaned_data
    try:
        is_asked = config.edit_server(
            server=server,
            given=form.given(server.name),
            description=values["description"],
            kind=Kind(values["kind"]),
            keeps_no_state=values.get("keeps_no_state"),
            actor=actor_of_request(request),
            if_unchanged=edit_conflicts.precondition_of_form(request),
        )
    except InvalidInput as invalid:
        form.tell(invalid)
        return False
    except NotAllowed as refused:
        form.add_error(None, str(refused))
        return False
    tasks.wake_workers_on_commit()
    asked = " It is being asked for its tools." if is_asked else ""
    messages.success(request, f"Saved {server.name}.{asked}")
    return True


def _show_editor(
    request: HttpRequest,
    server: Server,
    form: ServerEditForm,
    *,
    conflict: EditConflict | None = None,
    status: int = 200,
) -> HttpResponse:
    present = server_services.version_of(server)
    context = {
        "server": server,
        "form": form,
        "conflict": conflict,
        "version": conflict.version if conflict else edit_conflicts.version_in(request, present),
        "begin": request.GET.get("field", ""),
        "section": "servers",
    }
    return render(request, "catalog/server_edit.html", context, status=status)


@sensitive_variables()
def _show_conflict(
    request: HttpRequest, server: Server, form: ServerEditForm, outdated: OutdatedEdit
) -> HttpResponse:
    """What was typed stays; fields that the editor had not touched get the others' values."""
    present, given = make_edit_form(request, server), form.given(server.name)
    wanted: dict[str, object] = dict(form.cleaned_data)
    if "keeps_no_state" in wanted:
        wanted["keepsNoState"] = wanted["keeps_no_state"]
    if given:
        with suppress(InvalidInput):  # where it cannot be stored, it is compared as it was typed
            given = config.merge_server(given=given, actor=actor_of_request(request))
        wanted |= server_services.edited_settings(given)
    found = edit_conflicts.merge_form(
        request,
        outdated,
        wanted=wanted,
        present=present,
        label_of=lambda field: _label_of(present, field),
        form_names=FORM_NAMES,
    )
    for one in found.fields:
        if not one.is_typed and isinstance(present.fields.get(one.change.field), PairsField):
            rows = present.rows_of(one.change.field)
            found.data.setlist(f"{one.change.field}-name", [row.name for row in rows])
            found.data.setlist(f"{one.change.field}-value", [row.value for row in rows])
    shown = replace(found, fields=tuple(_hide_values(one, present, form) for one in found.fields))
    merged_form = make_edit_form(request, server, found.data)
    return _show_editor(request, server, merged_form, conflict=shown, status=409)


def _hide_values(conflict: FieldConflict, present: ServerEditForm, typed: ServerEditForm) -> FieldConflict:
    """Of headers and variables the names, of the rest what the form itself shows."""
    name = FORM_NAMES.get(conflict.change.field, conflict.change.field)
    if name not in present.fields or name not in typed.fields:
        return replace(conflict, typed="")
    values = [_describe_value(form, name) for form in (present, typed)]
    return replace(conflict, change=replace(conflict.change, value=values[0]), typed=values[1])


def _describe_value(form: ServerEditForm, name: str) -> object:
    if isinstance(form.fields[name], PairsField):
        return [row.name for row in form.rows_of(name) if row.name]
    return form[name].value()


def _label_of(form: ServerEditForm, field: str) -> str:
    name = FORM_NAMES.get(field, field)
    return str(form[name].label) if name in form.fields else field


@require_http_methods(["GET", "POST"])
@role_required(Role.EDITOR)
def server_loading(request: HttpRequest, name: str) -> HttpResponse:
    """GET previews a choice, or closes the preview where none is given; POST makes the change."""
    server = servers.find_server(name)
    if request.method != "POST":
        return _show_choice(request, server, request.GET.get("defer", ""))
    word = request.POST.get("defer", "")
    if word not in DEFER_VALUES:
        raise InvalidInput.at("defer", "must be inherit, load or defer")
    try:
        change = server_services.set_defer_loading(
            server=server,
            defer_loading=DEFER_VALUES[word],
            actor=actor_of_request(request),
            if_unchanged=edit_conflicts.precondition_of_form(request),
        )
    except OutdatedEdit as outdated:
        return _show_choice(request, servers.find_server(name), word, outdated)
    tasks.wake_workers_on_commit()
    if change is not None:
        tell_done(request, f"{server.name} {DEFER_DONE[word]}", change)
    return redirect("server_list") if request.POST.get("from") == "list" else redirect(server)


@require_POST
@role_required(Role.EDITOR)
def server_enabled(request: HttpRequest, name: str) -> HttpResponse:
    server = servers.find_server(name)
    enabled = request.POST.get("enabled") == "yes"
    change = server_services.set_enabled(server=server, enabled=enabled, actor=actor_of_request(request))
    tasks.wake_workers_on_commit()
    if change is not None:
        told = "enabled" if enabled else "disabled: its tools are no longer listed, counted or found"
        tell_done(request, f"The server {server.name} is {told}.", change)
    return redirect(server)


@require_POST
@role_required(Role.EDITOR)
def server_interval(request: HttpRequest, name: str) -> HttpResponse:
    server = servers.find_server(name)
    form = IntervalForm(request.POST)
    try:
        if form.is_valid() and _save_interval(request, server, form):
            messages.success(request, f"Saved how often {server.name} is refreshed.")
            return redirect(server)
    except OutdatedEdit as outdated:
        meanwhile = edit_conflicts.describe_conflict(outdated, lambda value: write_span(int(str(value))))
        form.add_error("interval", f"Not saved: {meanwhile}. Save again to replace it.")
        return show_server(request, servers.find_server(name), form, version=outdated.version, status=409)
    return show_server(request, server, form, status=422)


@require_POST
@role_required(Role.ADMIN)
def server_delete(request: HttpRequest, name: str) -> HttpResponse:
    server = servers.find_server(name)
    if request.POST.get("confirm") != server.name:
        messages.error(request, f"Nothing was deleted: type {server.name} to delete the server.")
        return redirect(server)
    server_services.delete_server(server=server, actor=actor_of_request(request))
    tasks.wake_workers_on_commit()
    messages.success(request, f"The server {server.name} and its tools are deleted.")
    return redirect("server_list")


def _show_choice(
    request: HttpRequest, server: Server, word: str, outdated: OutdatedEdit | None = None
) -> HttpResponse:
    given = request.POST if outdated else request.GET
    context: dict[str, object] = {
        "server": server,
        "came_from": given.get("from", ""),
        "version": server_services.version_of(server),
        "conflict": edit_conflicts.describe_conflict(outdated, _defer_words) if outdated else "",
    }
    if word in DEFER_VALUES and DEFER_VALUES[word] != server.defer_loading:
        flips = policy_flips.preview_server(server=server, defer_loading=DEFER_VALUES[word])
        context |= {"word": word, "flips": flips, "is_looking": True}
    page, part = "catalog/server_loading.html", "catalog/_defer_switch.html"
    return render_page(request, page, part, context, status=409 if outdated else 200)


def _defer_words(value: object) -> str:
    return next(DEFER_WORDS[word] for word, kept in DEFER_VALUES.items() if kept is value).lower()


def _save_interval(request: HttpRequest, server: Server, form: IntervalForm) -> bool:
    """False where the engine refuses the value; the form then shows it."""
    seconds = int(form.cleaned_data["interval"].total_seconds())
    try:
        server_services.set_refresh_interval(
            server=server,
            seconds=seconds,
            actor=actor_of_request(request),
            if_unchanged=edit_conflicts.precondition_of_form(request),
        )
    except InvalidInput as invalid:
        form.tell(invalid)
        return False
    return True
