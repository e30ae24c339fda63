"""Pages of calls through the gateway: the list, its files, and one call."""

from collections.abc import Iterator

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from catalog.access.roles import Role, require_role, role_required
from catalog.console.downloads import send_csv, send_json
from catalog.console.pages import render_page
from catalog.console.seen import NOTHING_NEW, has_seen
from catalog.domain.errors import InvalidInput
from catalog.selectors import servers
from sessions.forms import CallFilterForm
from sessions.models import Call
from sessions.selectors import calls, session_table
from sessions.selectors.calls import Place

# As `GET /calls` answers them, the key by its name.
EXPORTED = (
    "id",
    "at",
    "key",
    "client",
    "revision",
    "policy",
    "server",
    "tool",
    "via",
    "outcome",
    "duration_ms",
    "upstream_ms",
    "request_bytes",
    "result_bytes",
    "is_cut",
    "error",
)


@require_GET
@role_required(Role.VIEWER)
def call_list(request: HttpRequest) -> HttpResponse:
    form, now = CallFilterForm(request.GET), timezone.now()
    wanted = form.wanted()
    before, after = _read_place(request, "before"), _read_place(request, "after")
    part = calls.read_part(wanted, before=before, after=after)
    stamp = calls.stamp_part(part, now=now)
    if has_seen(request, stamp):
        return HttpResponse(status=NOTHING_NEW)
    context = {
        "part": part,
        "rows": calls.read_rows(part.calls),
        "stamp": stamp,
        "is_newest": before is None and part.newer is None,
        "form": form,
        "wanted": wanted,
        "server_names": servers.find_names,
        "chosen_key": calls.name_key(wanted.key),
        "keys": session_table.keys_to_choose,
    }
    return render_page(request, "sessions/call_list.html", "sessions/_call_table.html", context)


@require_GET
@role_required(Role.VIEWER)
def call_detail(request: HttpRequest, call_id: int) -> HttpResponse:
    (row,) = calls.read_rows([calls.find_call(call_id)])
    return render(request, "sessions/call_detail.html", {"row": row, "call": row.call})


@require_GET
def calls_csv(request: HttpRequest) -> HttpResponseBase:
    return send_csv("calls.csv", EXPORTED, _export(request))


@require_GET
def calls_json(request: HttpRequest) -> HttpResponseBase:
    return send_json("calls.json", _export(request))


def _export(request: HttpRequest) -> Iterator[dict[str, object]]:
    require_role(request.user, Role.VIEWER)
    wanted = CallFilterForm(request.GET).wanted()
    return (_describe(call) for call in calls.iterate_calls(wanted))


def _describe(call: Call) -> dict[str, object]:
    known = {"at": call.at.isoformat(), "key": call.key_name}
    return {name: known[name] if name in known else getattr(call, name) for name in EXPORTED}


def _read_place(request: HttpRequest, name: str) -> Place | None:
    """None for a text that no page has given: links live long."""
    try:
        return calls.read_place(request.GET.get(name, ""))
    except InvalidInput:
        return None
