"""Resources, templates and prompts through the gateway: those of servers that a policy shows whole."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from django.db.models import Count

from catalog.domain.choices import Kind
from catalog.domain.decide import shows_all
from catalog.domain.names import ToolId, qualify
from catalog.models import Server, ServerFeatures, Tool
from catalog.process_memory import remember
from sessions.domain.gateway_names import NameStyle, name_tools
from sessions.domain.resource_addresses import fits_template, write_address, write_template
from sessions.offers.gateway_offer import GatewayOffer

KEPT_SECONDS = 1.0

JsonObject = dict[str, Any]


class PromptSource(NamedTuple):
    """Where a prompt comes from: its server and the name it has there."""

    server_id: int
    name: str


@dataclass(frozen=True, slots=True)
class Features:
    """In MCP's form, with the names and addresses that they have here.

    `servers` are those shown whole, by name; `completing` those of them that complete arguments. `own` are
    the addresses and templates that servers have themselves, with the server, where own names are wanted.
    """

    resources: Sequence[JsonObject]
    templates: Sequence[JsonObject]
    prompts: Sequence[JsonObject]
    servers: Mapping[str, int]
    prompt_sources: Mapping[str, PromptSource]
    completing: frozenset[int]
    own: Sequence[tuple[str, str]] = ()

    def find_own(self, uri: str) -> tuple[str, str] | None:
        """The one server with a resource of this address, or with a template for it; and the address."""
        servers = {server for address, server in self.own if address == uri}
        servers = servers or {server for template, server in self.own if fits_template(uri, template)}
        return (servers.pop(), uri) if len(servers) == 1 else None


class _Kept(NamedTuple):
    read_at: float
    features: Features


_kept: WeakKeyDictionary[GatewayOffer, _Kept] = WeakKeyDictionary()
remember("resources and prompts through the gateway", _kept.clear)


def features_of(offer: GatewayOffer) -> Features:
    """At most a second old."""
    kept = _kept.get(offer)
    if kept is None or time.monotonic() - kept.read_at > KEPT_SECONDS:
        kept = _kept[offer] = _Kept(time.monotonic(), _read(offer))
    return kept.features


def _read(offer: GatewayOffer) -> Features:
    servers = find_whole_servers(offer)
    rows = list(ServerFeatures.objects.filter(server__in=servers.values()).select_related("server"))
    rows.sort(key=lambda row: row.server.name)
    names = _name_prompts(offer, rows)
    return Features(
        resources=[_move(entry, row, "uri", write_address) for row in rows for entry in row.resources],
        templates=[
            _move(entry, row, "uriTemplate", write_template) for row in rows for entry in row.templates
        ],
        prompts=[
            {**entry, "name": names[row.server_id, entry["name"]]} for row in rows for entry in row.prompts
        ],
        servers=servers,
        prompt_sources=_find_sources(rows) | {name: PromptSource(*one) for one, name in names.items()},
        completing=frozenset(row.server_id for row in rows if row.completions),
        own=_own_addresses(rows) if offer.names is NameStyle.OWN else (),
    )


def _find_sources(rows: Sequence[ServerFeatures]) -> dict[str, PromptSource]:
    """By the qualified names, which are taken as those of tools are."""
    return {
        qualify(ToolId(Kind(row.server.kind), row.server.name, entry["name"])): PromptSource(
            row.server_id, entry["name"]
        )
        for row in rows
        for entry in row.prompts
    }


def _own_addresses(rows: Sequence[ServerFeatures]) -> list[tuple[str, str]]:
    addresses = [(entry["uri"], row.server.name) for row in rows for entry in row.resources]
    return addresses + [(entry["uriTemplate"], row.server.name) for row in rows for entry in row.templates]


def find_whole_servers(offer: GatewayOffer) -> dict[str, int]:
    """Servers with nothing that the policy keeps from its keys."""
    candidates = Server.objects.refreshable().exclude(kind=Kind.BUILTIN).order_by()
    counts = Tool.objects.listed().order_by().values_list("server__name").annotate(Count("pk"))
    listed = Counter(dict(counts))
    shown = Counter(tool.offered.text.server for tool in offer.tools)
    return {
        name: pk
        for name, pk in candidates.values_list("name", "pk")
        if shows_all(offer.offer.policy, listed=listed[name], shown=shown[name])
    }


def _move(entry: JsonObject, row: ServerFeatures, field: str, write: Any) -> JsonObject:
    return {**entry, field: write(row.server.name, entry[field])}


def _name_prompts(offer: GatewayOffer, rows: Sequence[ServerFeatures]) -> dict[tuple[int, str], str]:
    """As tools are named, the prompts among themselves."""
    ids = {
        ToolId(Kind(row.server.kind), row.server.name, entry["name"]): (row.server_id, entry["name"])
        for row in rows
        for entry in row.prompts
    }
    qualified = {tool_id: qualify(tool_id) for tool_id in ids}
    named = name_tools(qualified, offer.names, search_tool=offer.search_name)
    return {ids[tool_id]: name for tool_id, name in named.items()}
