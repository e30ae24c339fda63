"""What an MCP client of a policy gets, as a tab of the page that shows an agent's first answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse

from catalog.console.pages import render_page
from catalog.domain.choices import Exposure
from catalog.models import Policy
from sessions.domain.revisions import Revision
from sessions.offers.gateway_offer import gateway_offer_of
from sessions.selectors.gateway_lists import list_tools, read_client_answer

GATEWAY = "gateway"  # in place of a format
EXPLANATION = (
    "What the gateway answers to “tools/list” of any MCP client. In search exposure our tools find, describe"
    " and call the others; in native exposure every tool is listed, for clients that defer by themselves."
)


@dataclass(frozen=True, slots=True)
class ExposureChoice:
    exposure: Exposure
    query: str
    is_open: bool
    is_own: bool  # the policy's


def write_query(exposure: Exposure | None = None) -> str:
    expose = {} if exposure is None else {"expose": exposure}
    return urlencode({"format": GATEWAY, **expose})


def is_asked(request: HttpRequest) -> bool:
    return request.GET.get("format") == GATEWAY


def show_client_answer(request: HttpRequest, policy: Policy, tabs: Sequence[object]) -> HttpResponse:
    answer = read_client_answer(policy.pk, _read_exposure(request))
    address = reverse("api:get_policy_client_list", args=[policy.slug])
    context = {
        "policy": policy,
        "tabs": tabs,
        "answer": answer,
        "explanation": EXPLANATION,
        "choices": [
            ExposureChoice(one, write_query(one), one == answer.offer.exposure, one == policy.exposure)
            for one in Exposure
        ],
        "query": write_query(answer.offer.exposure),
        "address": request.build_absolute_uri(f"{address}?expose={answer.offer.exposure}"),
        "part": "sessions/_gateway_answer.html",
    }
    return render_page(request, "sessions/agent_answer.html", "sessions/_gateway_answer.html", context)


def send_client_answer(request: HttpRequest, policy: Policy) -> HttpResponse:
    """Every entry of the list as a file; `part=tools` is the list alone."""
    offer = gateway_offer_of(policy.pk, exposure=_read_exposure(request))
    tools = list(offer.describe_pages())
    whole = list_tools(offer, revision=Revision.JULY_2026) | {"tools": tools}
    whole.pop("nextCursor", None)
    headers = {"Content-Disposition": f'attachment; filename="{policy.slug}-gateway-{offer.exposure}.json"'}
    answer = tools if request.GET.get("part") == "tools" else whole
    return JsonResponse(answer, safe=False, headers=headers, json_dumps_params={"ensure_ascii": False})


def _read_exposure(request: HttpRequest) -> Exposure | None:
    """The policy's own for any other text: shared links must not break."""
    asked = request.GET.get("expose", "")
    return Exposure(asked) if asked in list(Exposure) else None
