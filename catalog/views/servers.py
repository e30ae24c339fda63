"""Pages of servers: the list, one server, and refresh on demand."""

from dataclasses import asdict

from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods

from catalog import tasks
from catalog.access.roles import Role, require_role, role_of, role_required
from catalog.console.callbacks import find_callbacks
from catalog.console.pages import render_page, wants_part
from catalog.console.seen import STOP_ASKING
from catalog.console.spans import write_span
from catalog.domain.choices import Transport
from catalog.domain.connection import Connection, field_that_mends
from catalog.domain.dialects import ServerEntry
from catalog.domain.dialects.secrets import show_args
from catalog.domain.errors import Conflict
from catalog.domain.server_names import MAX_CHARS as SERVER_NAME_CHARS
from catalog.forms.filters import ServerFilterForm
from catalog.forms.servers import IntervalForm
from catalog.forms.sign_in import ClientForm
from catalog.models import Server
from catalog.models.jobs import JobState
from catalog.selectors import (
    demo,
    policies,
    refresh_log,
    server_features,
    server_marks,
    servers,
    sign_in_card,
    token_map,
    tools,
)
from catalog.services import refresh
from catalog.services import servers as server_services
from catalog.views.edit_conflicts import version_in
from catalog.views.word_diff import Effort, RevisionDiff, compare_definitions

OPTIONS = 12
OPEN_STATES = (JobState.WAITING, JobState.RUNNING)


@require_GET
@role_required(Role.VIEWER)
def server_list(request: HttpRequest) -> HttpResponse:
    form = ServerFilterForm(request.GET)
    sort = form.sort_order()
    page = servers.servers_for_table(
        now=timezone.now(),
        text=form.value("q"),
        status=form.wanted_status(),
        sort=sort,
        is_reversed=form.is_reversed,
        page=request.GET.get("page", "1"),
    )
    context = {
        "form": form,
        "page": page,
        "sort": sort,
        "is_reversed": form.is_reversed,
        "is_filtered": bool(form.value("q") or form.value("status")),
        "came_from": "list",
        "demo": None if wants_part(request) else demo.read_demo(),
    }
    return render_page(request, "catalog/server_list.html", "catalog/_server_table.html", context)


@require_GET
@role_required(Role.VIEWER)
def server_map(request: HttpRequest, name: str) -> HttpResponse:
    """The tools of one server as the overview's map draws them."""
    server = servers.find_server(name)
    policy = policies.choose_policy(request.GET.get("policy", ""))
    return JsonResponse([asdict(area) for area in token_map.read_server_map(server, policy)], safe=False)


@require_GET
@role_required(Role.VIEWER)
def server_options(request: HttpRequest) -> HttpResponse:
    """Options of the field by which lists are filtered by server, where there are very many."""
    text = request.GET.get("server", "").strip()[:SERVER_NAME_CHARS].replace("\0", "")
    context = {"names": servers.find_names(text, limit=OPTIONS), "text": text}
    return render(request, "catalog/_server_options.html", context)


@require_GET
@role_required(Role.VIEWER)
def server_detail(request: HttpRequest, name: str) -> HttpResponse:
    return show_server(request, servers.find_server(name))


def show_server(
    request: HttpRequest,
    server: Server,
    form: IntervalForm | None = None,
    *,
    client_form: ClientForm | None = None,
    version: str = "",
    status: int = 200,
) -> HttpResponse:
    """A form is given where it has mistakes to show, `version` where one is saved over a change."""
    interval = {"interval": write_span(server.refresh_interval_seconds)}
    entry = server_services.try_read_entry(server)
    policy = policies.choose_policy(request.GET.get("policy", ""))
    rows = tools.tools_of_server(server, policy)
    context = {
        "server": server,
        "form": form or IntervalForm(initial=interval),
        "version": version or version_in(request, server_services.version_of(server)),
        "row": servers.server_row(server),
        "shown": _describe_settings(entry),
        "mends": _find_field(request, server, entry),
        "marks": server_marks.marks_of_server(server),
        "policy": policy,
        "tools": rows,
        "is_behind": any(row.is_deciding for row in rows),
        "changed": _compare_changed(server),
        "features": server_features.features_of_server(server),
        "runs": servers.refresh_history(server),
        **_describe_sign_in(request, server, entry, client_form),
        **_progress(server),
    }
    page, part = "catalog/server_detail.html", "catalog/_server_detail.html"
    return render_page(request, page, part, context, status=status)


@require_http_methods(["GET", "POST"])
@role_required(Role.VIEWER)
def server_refresh(request: HttpRequest, name: str) -> HttpResponse:
    """POST requests a refresh; GET shows its progress and is polled until it ends."""
    server = servers.find_server(name)
    if request.method == "POST":
        require_role(request.user, Role.EDITOR)
        _ask_for_refresh(server)
    is_list = (request.POST or request.GET).get("from") == "list"
    if not wants_part(request):
        return redirect("server_list") if is_list else redirect(server)
    context = {"server": server, "beside": True, **_progress(server)}
    part = "catalog/_server_refreshed.html" if is_list else "catalog/_refresh_progress.html"
    has_ended = not context["is_refreshing"]
    response = render(request, part, context, status=STOP_ASKING if has_ended else 200)
    if has_ended:
        response["HX-Trigger"] = "server-refreshed"
    return response


def _describe_settings(entry: ServerEntry | None) -> dict[str, object]:
    """What everybody may see of how a server is reached. A page gets no secret value, only names."""
    if entry is None:
        return {}
    return {
        "args": show_args(entry.args, entry.secret_args),
        "cwd": entry.cwd,
        "env": ", ".join(entry.env),
        "headers": ", ".join(entry.headers),
        "timeout_seconds": entry.timeout_seconds,
    }


def _describe_sign_in(
    request: HttpRequest, server: Server, entry: ServerEntry | None, form: ClientForm | None
) -> dict[str, object]:
    """The form is for admins, beside the rest of what there is to sign in to the server."""
    card = sign_in_card.read_card(server, header_names=entry.headers if entry else ())
    if card is None or role_of(request.user) < Role.ADMIN:
        return {"sign_in": card}
    callback = next(iter(find_callbacks(request)), "")
    return {"sign_in": card, "client_form": form or ClientForm(auth=card.auth), "callback": callback}


def _find_field(request: HttpRequest, server: Server, entry: ServerEntry | None) -> str:
    """The field of the form that mends the last failure; empty where the reader may not change it."""
    if not server.last_error:
        return ""
    connection = server_services.connection_of(entry) if entry else Connection(Transport(server.transport))
    is_admins = server.transport == Transport.STDIO
    if role_of(request.user) < (Role.ADMIN if is_admins else Role.EDITOR):
        return ""
    return field_that_mends(server.last_error_code, server.last_error, connection)


def _ask_for_refresh(server: Server) -> None:
    if server.is_snapshot or not server.enabled:
        raise Conflict("A snapshot and a disabled server cannot be refreshed.")
    with transaction.atomic():
        refresh.request_refresh(server=server)
        tasks.wake_workers_on_commit()


def _progress(server: Server) -> dict[str, object]:
    job = servers.last_refresh_job(server)
    return {
        "job": job,
        "log": refresh_log.read_log(server, job),
        "is_refreshing": job is not None and job.state in OPEN_STATES,
    }


def _compare_changed(server: Server) -> list[RevisionDiff]:
    effort = Effort()
    return [
        RevisionDiff(newer, compare_definitions(older.definition, newer.definition, effort))
        for newer, older in servers.changed_definitions(server)
    ]
