"""Changing a server: deferLoading with a look at what flips, on and off, how often, and its end."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST

from catalog import tasks
from catalog.access import Role, role_required
from catalog.domain.errors import InvalidInput, OutdatedEdit
from catalog.forms.servers import DEFER_VALUES, DEFER_WORDS, IntervalForm
from catalog.forms.spans import write_span
from catalog.models import Server
from catalog.models.changes import Subject
from catalog.selectors import changes, policy_flips, servers
from catalog.services import server_settings
from catalog.services import servers as server_services
from catalog.views import edit_conflicts
from catalog.views.pages import actor_of, render_page
from catalog.views.servers import show_server


@require_http_methods(["GET", "POST"])
@role_required(Role.EDITOR)
def server_loading(request: HttpRequest, name: str) -> HttpResponse:
    """GET looks at what a choice would flip, or takes the look back where none is given; POST makes it."""
    server = servers.find_server(name)
    if request.method != "POST":
        return _show_choice(request, server, request.GET.get("defer", ""))
    word = request.POST.get("defer", "")
    if word not in DEFER_VALUES:
        raise InvalidInput.at("defer", "must be inherit, load or defer")
    is_new = server.defer_loading != DEFER_VALUES[word]
    try:
        server_services.set_defer_loading(
            server=server,
            defer_loading=DEFER_VALUES[word],
            actor=actor_of(request),
            if_unchanged=edit_conflicts.precondition_of(request),
        )
    except OutdatedEdit as outdated:
        return _show_choice(request, servers.find_server(name), word, outdated)
    tasks.wake_workers_on_commit()
    if is_new:
        told = f"deferLoading of {server.name} is now {DEFER_WORDS[word].lower()}."
        messages.success(request, told, extra_tags=_undo_of(server))
    return redirect("server_list") if request.POST.get("from") == "list" else redirect(server)


@require_POST
@role_required(Role.EDITOR)
def server_enabled(request: HttpRequest, name: str) -> HttpResponse:
    server = servers.find_server(name)
    enabled = request.POST.get("enabled") == "yes"
    server_settings.set_enabled(server=server, enabled=enabled, actor=actor_of(request))
    tasks.wake_workers_on_commit()
    if enabled != server.enabled:
        told = "enabled" if enabled else "disabled: its tools are in no list, no sum and no search"
        messages.success(request, f"The server {server.name} is {told}.", extra_tags=_undo_of(server))
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
        meanwhile = edit_conflicts.tell(outdated, lambda value: write_span(int(str(value))))
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
    server_settings.delete_server(server=server, actor=actor_of(request))
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
        "conflict": edit_conflicts.tell(outdated, _defer_words) if outdated else "",
    }
    if word in DEFER_VALUES and DEFER_VALUES[word] != server.defer_loading:
        flips = policy_flips.preview_server(server=server, defer_loading=DEFER_VALUES[word])
        context |= {"word": word, "flips": flips, "is_looking": True}
    page, part = "catalog/server_loading.html", "catalog/_defer_switch.html"
    return render_page(request, page, part, context, status=409 if outdated else 200)


def _defer_words(value: object) -> str:
    return next(DEFER_WORDS[word] for word, kept in DEFER_VALUES.items() if kept is value).lower()


def _save_interval(request: HttpRequest, server: Server, form: IntervalForm) -> bool:
    """False where the engine refuses the value; the form then says so."""
    seconds = int(form.cleaned_data["interval"].total_seconds())
    try:
        server_services.set_refresh_interval(
            server=server,
            seconds=seconds,
            actor=actor_of(request),
            if_unchanged=edit_conflicts.precondition_of(request),
        )
    except InvalidInput as invalid:
        form.tell(invalid)
        return False
    return True


def _undo_of(server: Server) -> str:
    change = changes.newest_change(Subject.SERVER, server.name)
    return str(change.pk) if change else ""
