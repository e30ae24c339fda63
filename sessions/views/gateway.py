"""The page of the gateway: where it is, what it serves, who calls it, and its connections to servers."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from catalog.access.roles import Role, role_required
from catalog.console.pages import actor_of_request, render_page
from catalog.console.seen import NOTHING_NEW, has_seen
from catalog.domain.errors import NotFound
from catalog.selectors import policies, servers
from sessions.domain.gateway_clients import CLIENTS
from sessions.offers import gateway_offer
from sessions.offers.gateway_offer import GatewayOffer
from sessions.selectors import gateway_page
from sessions.selectors.stamps import stamp_of
from sessions.services import gateway_processes
from sessions.views.gateway_address import gateway_address

LEFT_OUT_WORDS = {
    gateway_offer.SNAPSHOT: "of servers that are a file of definitions: there is nothing to call",
    gateway_offer.BUILTIN: "built into an agent, which calls them itself",
}


@dataclass(frozen=True, slots=True)
class LeftOut:
    count: int
    why: str


@require_GET
@role_required(Role.VIEWER)
def gateway(request: HttpRequest) -> HttpResponse:
    """Its part is polled. What a policy's keys are served is in it, since an import changes that."""
    now = timezone.now()
    state = gateway_page.read_gateway(now=now)
    policy = policies.choose_policy(request.GET.get("policy", ""))
    served = gateway_offer.gateway_offer_of(policy.pk) if policy else None
    facts = (served.offer.version, served.exposure, dict(served.left_out)) if served else ()
    stamp = stamp_of(state.stamp(now=now), facts)
    if has_seen(request, stamp):
        return HttpResponse(status=NOTHING_NEW)
    context = {
        "state": state,
        "stamp": stamp,
        "address": gateway_address(request),
        "policy": policy,
        "policy_slugs": policies.policy_slugs,
        "served": served,
        "left_out": _explain_left_out(served),
        "known_clients": CLIENTS,
    }
    return render_page(request, "sessions/gateway.html", "sessions/_gateway_live.html", context)


@require_GET
@role_required(Role.VIEWER)
def server_gateway(request: HttpRequest, name: str) -> HttpResponse:
    """How calls of one server go: a card that its page asks for and that is polled, and a page of its own
    without JavaScript.
    """
    server = servers.find_server(name)
    facts = gateway_page.read_upstream(server, now=timezone.now())
    if has_seen(request, facts.stamp):
        return HttpResponse(status=NOTHING_NEW)
    context = {"server": server, "upstream": facts}
    return render_page(request, "sessions/server_gateway.html", "sessions/_server_gateway.html", context)


@require_POST
@role_required(Role.EDITOR)
def lease_close(request: HttpRequest, lease_id: uuid.UUID) -> HttpResponse:
    try:
        gateway_processes.request_close(lease_id, actor_of_request(request))
    except NotFound:
        messages.info(request, "That connection was closed already.")
    else:
        messages.success(request, "The connection closes within seconds. The next call opens another.")
    return redirect("gateway")


def _explain_left_out(served: GatewayOffer | None) -> Sequence[LeftOut]:
    return [LeftOut(count, LEFT_OUT_WORDS[why]) for why, count in (served.left_out if served else {}).items()]
