"""Pages that change a server: deferLoading with a preview, enabling, interval, deletion."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST

from catalog import tasks
from catalog.access.roles import Role, role_required
from catalog.console.pages import actor_of_request, render_page, tell_done
from catalog.console.spans import write_span
from catalog.domain.errors import InvalidInput, OutdatedEdit
from catalog.forms.servers import DEFER_VALUES, DEFER_WORDS, IntervalForm
from catalog.models import Server
from catalog.selectors import policy_flips, servers
from catalog.services import servers as server_services
from catalog.views import edit_conflicts
from catalog.views.servers import show_server


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
        tell_done(request, f"deferLoading of {server.name} is now {DEFER_WORDS[word].lower()}.", change)
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
