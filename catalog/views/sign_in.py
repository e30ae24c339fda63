"""Pages by which an admin signs in to a server, comes back, and ends that again."""

import re
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import cache_control, never_cache
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_GET, require_http_methods, require_POST, require_safe
from django_htmx.http import HttpResponseClientRedirect
from django_htmx.middleware import HtmxDetails

from catalog import tasks
from catalog.access.roles import Role, role_of, role_required
from catalog.console.callbacks import PUBLIC_URL_MISSING, find_callbacks
from catalog.console.pages import actor_of_request
from catalog.domain.choices import AuthKind
from catalog.domain.connection import UpstreamFailure
from catalog.domain.errors import InvalidInput
from catalog.domain.oauth import host_of
from catalog.forms.sign_in import ClientForm
from catalog.models import OAuthAttempt, Server
from catalog.selectors import servers
from catalog.selectors.server_auth import read_auth
from catalog.services import oauth_clients, sign_in
from catalog.services.oauth_clients import ClientSettings, WayBack
from catalog.services.sign_in import Departure, SignInFailed
from catalog.views.servers import show_server

UNDER_WAY = "sign_ins_under_way"  # of this browser, by the digests of their states
MOST_UNDER_WAY = 5
LONGEST_ANSWER_CHARS = 4_000
ANSWERS = ("state", "code", "error", "iss")
UNREADABLE = "What the sign-in server sent along cannot be read: connect again from the server's page"
# A source that stands for nothing else in a Content-Security-Policy.
_ORIGIN = re.compile(r"https?://[A-Za-z0-9.-]+(:[0-9]+)?")


@never_cache
@require_http_methods(["GET", "POST"])
@role_required(Role.ADMIN)
def server_connect(request: HttpRequest, name: str) -> HttpResponse:
    """POST finds out where to sign in, GET says so, and POST with the attempt leaves for there."""
    server = servers.find_server(name)
    try:
        if request.method != "POST":
            return _show_departure(request, _find_departure(request, server, request.GET.get("attempt", "")))
        if state_sha256 := request.POST.get("attempt", ""):
            return _lead_to(request, _find_departure(request, server, state_sha256).url)
        if read_auth(server, header_names=()).kind is AuthKind.CLIENT_CREDENTIALS:
            sign_in.obtain_own_token(server=server, actor=actor_of_request(request))
            _tell_connected(request, server)
            return _lead_to(request, server.get_absolute_url())
        attempt = sign_in.begin(
            server=server, actor=actor_of_request(request), way_back=_find_way_back(request)
        )
    except (UpstreamFailure, SignInFailed) as failure:
        messages.error(request, str(failure))
        return _lead_to(request, server.get_absolute_url())
    _remember(request, attempt)
    page = reverse("server_connect", args=[server.address], query={"attempt": attempt.state_sha256})
    return _lead_to(request, page)


@sensitive_variables()
@login_not_required
@never_cache
@require_GET
def sign_in_callback(request: HttpRequest) -> HttpResponse:
    """Where a provider sends the browser back to. Only one that left from here gets anything done."""
    answer = _read_answer(request)
    state_sha256 = sign_in.digest_state(answer.get("state", ""))
    under_way = request.session.get(UNDER_WAY, [])
    if state_sha256 not in under_way or role_of(request.user) < Role.ADMIN:
        raise SignInFailed(sign_in.STALE)
    actor = actor_of_request(request)
    server = sign_in.find_departure(state_sha256=state_sha256, actor=actor).attempt.server
    request.session[UNDER_WAY] = [one for one in under_way if one != state_sha256]
    try:
        server = sign_in.finish(answer=answer, actor=actor)
    except (SignInFailed, UpstreamFailure) as failure:
        messages.error(request, str(failure))
        return redirect(server)
    _tell_connected(request, server)
    return redirect(server)


@login_not_required
@require_safe
@cache_control(max_age=3600)
def client_document(request: HttpRequest) -> HttpResponse:
    """What this console is as a client, for providers: its address is the client's id."""
    if not settings.CLIENT_DOCUMENT_OFFERED:
        raise Http404
    return JsonResponse(oauth_clients.describe_this_client())


@require_POST
@role_required(Role.ADMIN)
def server_disconnect(request: HttpRequest, name: str) -> HttpResponse:
    server = servers.find_server(name)
    is_told = sign_in.disconnect(server=server, actor=actor_of_request(request))
    tasks.wake_workers_on_commit()
    told = "The provider was told" if is_told else "The provider was not told: withdraw the access there, too"
    messages.success(request, f"Disconnected {server.name}. {told}.")
    return redirect(server)


@sensitive_post_parameters()
@sensitive_variables()
@never_cache
@require_POST
@role_required(Role.ADMIN)
def server_client(request: HttpRequest, name: str) -> HttpResponse:
    """Store a client id of one's own, or with `remove` forget it."""
    server = servers.find_server(name)
    if request.POST.get("remove"):
        wanted = ClientSettings(AuthKind.NONE)
        oauth_clients.set_client(server=server, wanted=wanted, actor=actor_of_request(request))
        tasks.wake_workers_on_commit()
        messages.success(request, f"Removed the client id of {server.name}.")
        return redirect(server)
    form = ClientForm(request.POST, auth=read_auth(server, header_names=()))
    if form.is_valid() and _save_client(request, server, form):
        return redirect(server)
    return show_server(request, server, client_form=form, status=422)


@sensitive_variables()
def _save_client(request: HttpRequest, server: Server, form: ClientForm) -> bool:
    """False where the engine refuses; the form then shows why."""
    wanted = form.wanted()
    try:
        oauth_clients.set_client(server=server, wanted=wanted, actor=actor_of_request(request))
    except InvalidInput as invalid:
        form.tell(invalid)
        return False
    tasks.wake_workers_on_commit()
    is_own = wanted.kind is AuthKind.CLIENT_CREDENTIALS
    next_step = "It is being asked for its tools" if is_own else "Connect it now"
    messages.success(request, f"Saved the client id of {server.name}. {next_step}.")
    return True


def _find_way_back(request: HttpRequest) -> WayBack:
    """Raises SignInFailed where nobody could come back."""
    callbacks = find_callbacks(request)
    if not callbacks:
        raise SignInFailed(PUBLIC_URL_MISSING)
    return WayBack(
        redirect_uri=callbacks[0],
        others=callbacks[1:],
        home=settings.PUBLIC_URL or "",
        document=oauth_clients.document_address() if settings.CLIENT_DOCUMENT_OFFERED else "",
    )


def _remember(request: HttpRequest, attempt: OAuthAttempt) -> None:
    under_way = [*request.session.get(UNDER_WAY, []), attempt.state_sha256]
    request.session[UNDER_WAY] = under_way[-MOST_UNDER_WAY:]


def _find_departure(request: HttpRequest, server: Server, state_sha256: str) -> Departure:
    """Raises SignInFailed where it did not begin in this browser, for this server."""
    if state_sha256 not in request.session.get(UNDER_WAY, []):
        raise SignInFailed(sign_in.STALE)
    departure = sign_in.find_departure(state_sha256=state_sha256, actor=actor_of_request(request))
    if departure.attempt.server_id != server.pk:
        raise SignInFailed(sign_in.STALE)
    return departure


def _show_departure(request: HttpRequest, departure: Departure) -> HttpResponse:
    back = host_of(departure.redirect_uri)
    context = {
        "server": departure.attempt.server,
        "departure": departure,
        "comes_back_elsewhere": "" if back == request.get_host() else back,
        "section": "servers",
    }
    response = render(request, "catalog/server_connect.html", context)
    parts = urlsplit(departure.url)
    origin = f"{parts.scheme}://{parts.netloc}"
    if _ORIGIN.fullmatch(origin):
        # For browsers without scripts, which would not follow the form to the provider. django-csp's own
        # decorators set it, for values that are known before.
        setattr(response, "_csp_update", {"form-action": [origin]})  # noqa: B010
    return response


def _tell_connected(request: HttpRequest, server: Server) -> None:
    tasks.wake_workers_on_commit()
    asked = " It is being asked for its tools." if server.enabled else ""
    messages.success(request, f"Connected {server.name}.{asked}")


def _lead_to(request: HttpRequest, url: str) -> HttpResponse:
    """Also to a provider: as the answer to a form, browsers follow no redirect to elsewhere."""
    return HttpResponseClientRedirect(url) if HtmxDetails(request) else redirect(url)


@sensitive_variables()
def _read_answer(request: HttpRequest) -> dict[str, str]:
    """What the provider sent along. Raises SignInFailed for what no provider sends."""
    given = {name: request.GET.getlist(name) for name in ANSWERS if name in request.GET}
    if any(len(values) > 1 or len(values[0]) > LONGEST_ANSWER_CHARS for values in given.values()):
        raise SignInFailed(UNREADABLE)
    return {name: values[0] for name, values in given.items()}
