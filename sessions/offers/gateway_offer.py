"""What a policy's keys get through the gateway: which tools, under which names, in which lists."""

import base64
import binascii
import json
import time
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Lock
from typing import NamedTuple

from catalog.domain.choices import Exposure, Kind, Transport
from catalog.domain.errors import InvalidInput
from catalog.domain.limits import GATEWAY_CONTENT_BYTES, GATEWAY_PAGE_ENTRIES
from catalog.domain.names import ToolId
from catalog.domain.sizes import count_message_bytes, measure_definition, tokens_of
from catalog.models import Server
from catalog.process_memory import remember
from sessions.domain.gateway_names import FIXED_NAMES, NameStyle, name_search_tool, name_tools
from sessions.offers import offer_cache
from sessions.offers.gateway_tools import ALWAYS_LOAD, JsonObject, define_own_tools, define_read_result
from sessions.offers.offer import Offer, OfferedTool
from sessions.offers.versions import Versions

SNAPSHOTS_KEPT_SECONDS = 1.0
KEPT_OFFERS = 256
# Of all offers together: names and lookups take some 500 bytes for each.
KEPT_TOOLS = 200_000
SNAPSHOT, BUILTIN = "snapshot", "builtin"
# A gateway runs no tasks, and does not say that it does.
_NOT_PASSED = ("execution",)


class GatewayTool(NamedTuple):
    """A tool that can be called, and its name here."""

    name: str
    offered: OfferedTool


class ListedPage(NamedTuple):
    """One page of `tools/list`, in MCP's form. `next` is None on the last."""

    tools: list[JsonObject]
    next: str | None


@dataclass(frozen=True, eq=False)
class GatewayOffer:
    """Immutable and shared by every request that sees the same; derived values are computed once.

    `offer` has the tools that can be called and no others; `left_out` counts the others by why.
    """

    offer: Offer
    exposure: Exposure
    names: NameStyle
    left_out: Mapping[str, int]

    @cached_property
    def tools(self) -> tuple[GatewayTool, ...]:
        """In order of qualified names."""
        by_id = {_identify(tool): tool.name for tool in self.offer.tools}
        named = name_tools(by_id, self.names, search_tool=self.search_name)
        return tuple(GatewayTool(named[_identify(tool)], tool) for tool in self.offer.tools)

    @property
    def search_name(self) -> str:
        return name_search_tool(self.offer.policy.search_tool_name)

    @property
    def lists_all(self) -> bool:
        """Whether every tool is listed: in native exposure, and where nothing is deferred."""
        return self.exposure is Exposure.NATIVE or not self.offer.is_active

    def lists(self, tool: GatewayTool) -> bool:
        """Whether a tool is listed; the others are found."""
        return self.lists_all or not tool.offered.is_deferred

    @cached_property
    def own_names(self) -> frozenset[str]:
        return frozenset((*FIXED_NAMES, self.search_name))

    @cached_property
    def by_name(self) -> dict[str, GatewayTool]:
        """Every name that a call may use: those here, then the qualified ones."""
        found = {tool.offered.name: tool for tool in self.tools}
        return found | {tool.name: tool for tool in self.tools}

    @cached_property
    def name_of(self) -> dict[str, str]:
        """The names here by the qualified ones."""
        return {tool.offered.name: tool.name for tool in self.tools}

    @cached_property
    def own_tools(self) -> list[JsonObject]:
        if self.lists_all:
            return [define_read_result()]
        return define_own_tools(self.offer.policy, self.offer.deferred_servers.values())

    @cached_property
    def listed(self) -> tuple[GatewayTool, ...]:
        """The servers' tools that are listed, in order."""
        return tuple(filter(self.lists, self.tools))

    @cached_property
    def listed_tokens(self) -> int:
        """What the whole list costs, all pages together."""
        own = sum(
            measure_definition(tool["name"], tool["description"], tool["inputSchema"]).chars
            for tool in self.own_tools
        )
        return tokens_of(own + sum(tool.offered.text.chars for tool in self.listed))

    def list_page(self, cursor: str | None = None) -> ListedPage:
        """As many tools as a page may have, and a message may hold. Raises InvalidInput for a cursor that no
        page gave; an empty one, as some clients send first, is none.
        """
        after = _read_cursor(cursor) if cursor else None
        own = self.own_tools if after is None else []
        waiting = (tool for tool in self.listed if after is None or tool.offered.name > after)
        page, last, left_bytes = list(own), "", GATEWAY_CONTENT_BYTES - count_message_bytes(own)
        most = GATEWAY_PAGE_ENTRIES if self.lists_all else GATEWAY_PAGE_ENTRIES + len(own)
        for tool in waiting:
            entry = self.describe(tool)
            left_bytes -= count_message_bytes(entry)
            if last and (left_bytes < 0 or len(page) >= most):
                return ListedPage(page, _write_cursor(last))
            page.append(entry)
            last = tool.offered.name
        return ListedPage(page, None)

    def describe(self, tool: GatewayTool) -> JsonObject:
        """The definition in MCP's form, as a list has it."""
        definition: JsonObject = {**json.loads(tool.offered.text.write("mcp")), "name": tool.name}
        for field in _NOT_PASSED:
            definition.pop(field, None)
        if self.offer.policy.max_result_tokens:
            definition.pop("outputSchema", None)  # a result may be cut, and would not fit it
        definition["inputSchema"] = {"type": "object", **definition["inputSchema"]}
        meta = {key: value for key, value in definition.pop("_meta", {}).items() if key != ALWAYS_LOAD}
        if not tool.offered.is_deferred:
            meta[ALWAYS_LOAD] = True
        return {**definition, "_meta": meta} if meta else definition

    def describe_pages(self) -> Iterator[JsonObject]:
        """Every entry of the list."""
        yield from self.own_tools
        yield from map(self.describe, self.listed)


class _Snapshots(NamedTuple):
    """The names of servers that are a file of definitions."""

    read_at: float
    names: frozenset[str]


_Key = tuple[int, Exposure, NameStyle]  # the first is the policy's id


class _Memory:
    """Snapshots, read at most once a second, and the last gateway offers, least recently used out first."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._snapshots: _Snapshots | None = None
        self._offers: OrderedDict[_Key, tuple[object, GatewayOffer]] = OrderedDict()
        self._narrowed: OrderedDict[int, tuple[object, Offer, Mapping[str, int]]] = OrderedDict()

    def clear(self) -> None:
        with self._lock:
            self._snapshots = None
            self._offers.clear()
            self._narrowed.clear()

    def snapshots(self) -> frozenset[str]:
        known = self._snapshots
        if known is None or time.monotonic() - known.read_at > SNAPSHOTS_KEPT_SECONDS:
            known = self._snapshots = _read_snapshots()
        return known.names

    def find(
        self, offer: Offer, snapshots: frozenset[str], policy_id: int, exposure: Exposure, names: NameStyle
    ) -> GatewayOffer:
        key = (policy_id, exposure, names)
        with self._lock:
            narrowed, left_out = self._narrow(policy_id, offer, snapshots)
            made_of, found = self._offers.get(key, (None, None))
            if found is None or made_of is not narrowed:
                found = GatewayOffer(narrowed, exposure, names, left_out)
                self._offers[key] = (narrowed, found)
            self._offers.move_to_end(key)
            self._trim()
        return found

    def _narrow(
        self, policy_id: int, offer: Offer, snapshots: frozenset[str]
    ) -> tuple[Offer, Mapping[str, int]]:
        """The offer without tools that nobody can call, for as long as neither it nor the servers change."""
        source = (offer, snapshots)
        kept = self._narrowed.get(policy_id)
        if kept is None or kept[0] != source:
            kept = self._narrowed[policy_id] = (source, *_leave_out(offer, snapshots))
        self._narrowed.move_to_end(policy_id)
        return kept[1], kept[2]

    def _trim(self) -> None:
        tools = sum(len(found.offer.tools) for _, found in self._offers.values())
        while len(self._offers) > 1 and (tools > KEPT_TOOLS or len(self._offers) > KEPT_OFFERS):
            _, (_, gone) = self._offers.popitem(last=False)
            tools -= len(gone.offer.tools)
        used = {policy_id for policy_id, _, _ in self._offers}
        for policy_id in [one for one in self._narrowed if one not in used]:
            del self._narrowed[policy_id]


_memory = _Memory()
remember("offers through the gateway", _memory.clear)


def gateway_offer_of(
    policy_id: int,
    *,
    exposure: Exposure | None = None,
    names: NameStyle = NameStyle.QUALIFIED,
    versions: Versions | None = None,
) -> GatewayOffer:
    """`exposure` is the policy's own where it is not given."""
    offer = offer_cache.offer_of_policy(policy_id, versions)
    exposure = exposure or offer.policy.exposure
    return _memory.find(offer, _memory.snapshots(), policy_id, exposure, names)


def _read_snapshots() -> _Snapshots:
    read_at = time.monotonic()
    servers = Server.objects.filter(transport=Transport.SNAPSHOT).order_by()
    return _Snapshots(read_at, frozenset(servers.values_list("name", flat=True)))


def _leave_out(offer: Offer, snapshots: frozenset[str]) -> tuple[Offer, Mapping[str, int]]:
    why = {tool.name: reason for tool in offer.tools if (reason := _why_left_out(tool, snapshots))}
    if not why:
        return offer, {}
    kept = tuple(tool for tool in offer.tools if tool.name not in why)
    return replace(offer, tools=kept), dict(Counter(why.values()))


def _why_left_out(tool: OfferedTool, snapshots: frozenset[str]) -> str:
    """Empty for a tool that can be called. A built-in one is the agent's own to run."""
    if tool.text.kind == Kind.BUILTIN:
        return BUILTIN
    return SNAPSHOT if tool.text.server in snapshots else ""


def _identify(tool: OfferedTool) -> ToolId:
    return ToolId(Kind(tool.text.kind), tool.text.server, tool.text.tool)


def _write_cursor(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode().rstrip("=")


def _read_cursor(cursor: str) -> str:
    try:
        return base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise InvalidInput.at("cursor", "is not one that a page of this list gave") from None
