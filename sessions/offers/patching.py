"""Applies an edit to an offer; everything that the edit did not touch is shared with the old one."""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from catalog.domain.facts import ToolFacts
from catalog.domain.prompt import DeferredServer, Described
from sessions.offers import fingerprints
from sessions.offers.offer import Derived, Offer, OfferedTool
from sessions.offers.versions import Versions

_by_name = attrgetter("name")


@dataclass(frozen=True, slots=True)
class Patch:
    """Tools that may have changed, by id: None for one that is not offered any more."""

    tools: Mapping[int, OfferedTool | None]
    servers: Mapping[str, str]
    locked: tuple[ToolFacts, ...]


@dataclass(frozen=True, slots=True)
class _Difference:
    """Tools removed and added, both in name order; a changed tool is in both."""

    gone: Sequence[OfferedTool]
    added: Sequence[OfferedTool]

    @property
    def is_empty(self) -> bool:
        return not (self.gone or self.added)

    @property
    def keeps_names(self) -> bool:
        return {tool.name for tool in self.gone} == {tool.name for tool in self.added}

    def among(self, which: str) -> "_Difference":
        """Only the tools `always` or `deferred`."""
        deferred = which == "deferred"
        return _Difference(
            [tool for tool in self.gone if tool.is_deferred is deferred],
            [tool for tool in self.added if tool.is_deferred is deferred],
        )


def patch_offer(offer: Offer, patch: Patch, versions: Versions) -> Offer:
    """The offer at these versions; the same object with its derived values where nothing differs."""
    difference = _compare(offer, patch.tools)
    is_described_anew = patch.servers != offer.servers
    if difference.is_empty and not is_described_anew and patch.locked == offer.locked:
        return offer.sharing(versions=versions)
    tools = tuple(_replace(offer.tools, difference))
    patched = replace(offer, versions=versions, tools=tools, servers=patch.servers, locked=patch.locked)
    derived: Derived = {**_derive_tools(offer, difference), **_derive_sums(offer, difference)}
    if not is_described_anew:
        derived |= _derive_servers(offer, difference.among("deferred"))
        derived["fingerprint"] = _move(offer, difference)
    return patched.told(derived)


def _compare(offer: Offer, tools: Mapping[int, OfferedTool | None]) -> _Difference:
    known = {tool.text.id: tool for tool in offer.tools if tool.text.id in tools}
    pairs = [(known.get(tool_id), now) for tool_id, now in tools.items()]
    differing = [(before, now) for before, now in pairs if before != now]
    return _Difference(
        [before for before, _ in differing if before is not None],
        sorted((now for _, now in differing if now is not None), key=_by_name),
    )


def _replace(tools: Iterable[OfferedTool], difference: _Difference) -> list[OfferedTool]:
    """Input and output are in name order."""
    changed = list(tools)
    for tool in difference.gone:
        del changed[bisect_left(changed, tool.name, key=_by_name)]
    for tool in difference.added:
        insort(changed, tool, key=_by_name)
    return changed


def _move(offer: Offer, difference: _Difference) -> int:
    gone = (tool.fingerprint(offer.servers) for tool in difference.gone)
    added = (tool.fingerprint(offer.servers) for tool in difference.added)
    return fingerprints.add_to_set_hash(
        added, to=fingerprints.remove_from_set_hash(gone, of=offer.fingerprint)
    )


def _derive_tools(offer: Offer, difference: _Difference) -> Derived:
    """The tools as the offer has sorted them. What depends on their names alone stays where they do."""
    derived: Derived = {
        "always": tuple(_replace(offer.always, difference.among("always"))),
        "deferred": tuple(_replace(offer.deferred, difference.among("deferred"))),
        "by_name": _index(offer.by_name, difference),
        "own_index": offer.own_index,
    }
    if difference.keeps_names:
        derived["visible"] = offer.visible
    return derived


def _index(known: dict[str, OfferedTool], difference: _Difference) -> dict[str, OfferedTool]:
    changed = known.copy()
    for tool in difference.gone:
        del changed[tool.name]
    changed.update((tool.name, tool) for tool in difference.added)
    return changed


def _derive_sums(offer: Offer, difference: _Difference) -> Derived:
    always, deferred = difference.among("always"), difference.among("deferred")
    return {
        "all_chars": offer.all_chars + _growth(difference, lambda tool: tool.text.chars),
        "always_chars": offer.always_chars + _growth(always, lambda tool: tool.text.chars),
        "stub_chars": offer.stub_chars + _growth(deferred, lambda tool: tool.text.stub_chars),
    }


def _growth(difference: _Difference, measure: Callable[[OfferedTool], int]) -> int:
    return sum(map(measure, difference.added)) - sum(map(measure, difference.gone))


def _derive_servers(offer: Offer, difference: _Difference) -> Derived:
    counts = offer.deferred_by_server.copy()
    counts.update(tool.text.server for tool in difference.added)
    counts.subtract(tool.text.server for tool in difference.gone)
    changed = _deferred_of(offer, difference)
    for tool in difference.gone:
        del changed[tool.text.server][tool.name]
    for tool in difference.added:
        changed[tool.text.server][tool.name] = tool.text
    servers = {name: known for name, known in offer.deferred_servers.items() if name not in changed}
    for name, tools in changed.items():
        if tools:
            ordered = tuple(sorted(tools.values(), key=_by_name))
            servers[name] = DeferredServer(name, ordered, offer.servers.get(name, ""))
    return {"deferred_by_server": +counts, "deferred_servers": servers}


def _deferred_of(offer: Offer, difference: _Difference) -> dict[str, dict[str, Described]]:
    """The deferred tools by name, of each server with a difference."""
    names = {tool.text.server for tool in (*difference.gone, *difference.added)}
    known = {name: offer.deferred_servers.get(name) for name in names}
    return {name: {tool.name: tool for tool in one.tools} if one else {} for name, one in known.items()}
