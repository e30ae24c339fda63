"""The REST call that says what an MCP client of a policy would be given."""

from typing import Any

from django.http import HttpRequest
from ninja import Field, Router, Schema

from catalog.access.callers import ADMIN_KEY
from catalog.domain.choices import Exposure
from catalog.request_bodies import Text, example
from catalog.selectors.policies import find_policy
from sessions.domain.gateway_names import NameStyle
from sessions.domain.revisions import Revision
from sessions.offers.gateway_offer import gateway_offer_of
from sessions.selectors.gateway_lists import list_tools

router = Router(tags=["tool lists"], auth=ADMIN_KEY)


class ClientListOut(Schema):
    """The result of `tools/list` as the protocol gives it, then what we say of it."""

    model_config = example(
        {
            "tools": [
                {"name": "search_tools", "description": "Find tools.", "inputSchema": {"type": "object"}}
            ],
            "resultType": "complete",
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "toolsearch", "version": "1.0"}},
            "tokens": 980,
            "left_out": {"snapshot": 12, "builtin": 3},
            "exposure": "search",
            "names": "qualified",
            "revision": "2026-07-28",
        }
    )

    tools: list[dict[str, Any]]
    next: str | None = Field(None, alias="nextCursor", description="There where the list goes on.")
    result_type: str | None = Field(
        None, alias="resultType", description="This and the next three: 2026-07-28."
    )
    ttl_ms: int | None = Field(None, alias="ttlMs")
    cache_scope: str | None = Field(None, alias="cacheScope")
    meta: dict[str, Any] | None = Field(None, alias="_meta")
    tokens: int = Field(description="What the whole list costs, all pages together.")
    left_out: dict[str, int] = Field(description="Visible tools that nobody can call, counted by why.")
    exposure: Exposure
    names: NameStyle
    revision: Revision


@router.get(
    "/policies/{slug}/mcp",
    operation_id="get_policy_client_list",
    summary="What an MCP client gets",
    response=ClientListOut,
    by_alias=True,
    exclude_unset=True,
)
def get_policy_client_list(
    request: HttpRequest,
    slug: Text,
    *,
    expose: Exposure | None = None,
    revision: Revision = Revision.JULY_2026,
    names: NameStyle = NameStyle.QUALIFIED,
    cursor: Text | None = None,
) -> dict[str, Any]:
    """What the gateway answers to `tools/list` under this policy, its first page unless `cursor` says
    otherwise. `expose` is the policy's own exposure where it is not given.
    """
    offer = gateway_offer_of(find_policy(slug).pk, exposure=expose, names=names)
    told = {
        "tokens": offer.listed_tokens,
        "left_out": dict(offer.left_out),
        "exposure": offer.exposure,
        "names": names,
        "revision": revision,
    }
    return list_tools(offer, revision=revision, cursor=cursor) | told
