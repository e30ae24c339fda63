"""What `tools/list` answers to a policy's keys, without a client."""

from dataclasses import dataclass
from importlib import metadata

from catalog.domain.choices import Exposure
from sessions.domain.gateway_names import NameStyle
from sessions.domain.revisions import Revision
from sessions.offers.gateway_offer import GatewayOffer, gateway_offer_of
from sessions.offers.gateway_tools import JsonObject
from sessions.selectors.samples import Sample, sample_entries

SERVER_NAME = "toolsearch"
# As the gateway's server says of its lists: they are a key's own and may change at any time.
_CACHING: JsonObject = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


@dataclass(frozen=True, slots=True)
class ClientAnswer:
    """A list for a page: the beginning of it, and what all of it costs. `native_tokens` is what it costs
    where every tool is listed.
    """

    offer: GatewayOffer
    sample: Sample
    native_tokens: int

    @property
    def saved_tokens(self) -> int:
        return self.native_tokens - self.offer.listed_tokens

    @property
    def left_out(self) -> int:
        return sum(self.offer.left_out.values())

    @property
    def more_tokens(self) -> int:
        return -self.saved_tokens


def list_tools(offer: GatewayOffer, *, revision: Revision, cursor: str | None = None) -> JsonObject:
    """The result of `tools/list`: one page. Raises InvalidInput for a cursor that no page gave."""
    page = offer.list_page(cursor)
    result: JsonObject = {"tools": page.tools}
    if page.next is not None:
        result["nextCursor"] = page.next
    return {**result, **_CACHING, "_meta": _describe_server()} if revision.is_modern else result


def read_client_answer(policy_id: int, exposure: Exposure | None) -> ClientAnswer:
    offer = gateway_offer_of(policy_id, exposure=exposure, names=NameStyle.QUALIFIED)
    native = gateway_offer_of(policy_id, exposure=Exposure.NATIVE, versions=offer.offer.versions)
    return ClientAnswer(offer, sample_entries(offer.describe_pages()), native.listed_tokens)


def _describe_server() -> JsonObject:
    version = metadata.version(SERVER_NAME)
    server = {"name": SERVER_NAME, "title": SERVER_NAME, "version": version}
    return {"io.modelcontextprotocol/serverInfo": server}
