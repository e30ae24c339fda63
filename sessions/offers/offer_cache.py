"""Finds the current offer of a policy or session, and caches it while its versions stay the same.

A session that brings tools along, narrows what it sees or has a context window of its own gets its own offer,
decided from the same facts. Sessions with the same additions share it.
"""

from collections import OrderedDict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import gt, is_
from threading import Lock
from typing import NamedTuple

from django.db.models import QuerySet

from catalog.domain.choices import Kind, Mode, Quarantine, Reason, ThresholdUnit
from catalog.domain.decide import (
    Decision,
    decide,
    decide_by_threshold,
    decide_one,
    locked_tools,
    measure_safely,
    prepare_rules,
    visible_tools,
)
from catalog.domain.errors import Unavailable
from catalog.domain.facts import SessionFacts, ToolFacts
from catalog.domain.globs import compile_globs
from catalog.domain.policy import Policy as DomainPolicy
from catalog.domain.rules import Rule
from catalog.domain.thresholds import ThresholdTotals, measure_threshold
from catalog.models import Policy, Server, Tool
from catalog.process_memory import remember
from catalog.selectors.facts import read_facts, read_policy
from sessions.models import AgentSession
from sessions.offers import builtins, decided, definitions, known_models
from sessions.offers.offer import RENDERED, Basis, Offer, OfferedTool
from sessions.offers.patching import Patch, patch_offer
from sessions.offers.rendering.wire import ToolText
from sessions.offers.versions import Versions, read_versions

ATTEMPTS = 10
# Offers of policies and of sessions, each with all that is derived from it but the definitions.
PLAIN_OFFERS_BYTES = 64_000_000
OWN_OFFERS_BYTES = 32_000_000
GLOB_BYTES = 60  # of a short text, besides its characters
_BY_THRESHOLD = frozenset({Reason.OVER_THRESHOLD, Reason.UNDER_THRESHOLD})


@dataclass(frozen=True, slots=True)
class Additions:
    """The parts of a session that can change a decision."""

    visible: tuple[tuple[str, ...], ...] = ()
    builtins: str = ""  # a digest
    context_window: int | None = None
    is_over: bool = False

    def count_bytes(self) -> int:
        return sum(len(glob) + GLOB_BYTES for globs in self.visible for glob in globs)


NOTHING = Additions()


class _KeptOffer(NamedTuple):
    versions: Versions
    offer: Offer
    bytes: int


class OfferCache:
    """Offers within a limit of bytes: the last one per policy and additions; least recently used are evicted
    first.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._offers: OrderedDict[tuple[int, Additions], _KeptOffer] = OrderedDict()
        self._lock = Lock()
        self._building: dict[int, Lock] = {}
        self.bytes = 0

    def building(self, policy_id: int) -> Lock:
        """Held while a policy's offer is built: whoever needs the same one waits, no other policy does."""
        with self._lock:
            return self._building.setdefault(policy_id, Lock())

    def find(self, policy_id: int, additions: Additions, versions: Versions) -> Offer | None:
        key = (policy_id, additions)
        with self._lock:
            kept = self._offers.get(key)
            if kept is None or kept.versions != versions:
                return None
            self._offers.move_to_end(key)
            return kept.offer

    def find_last(self, policy_id: int, additions: Additions) -> Offer | None:
        """The last offer, whatever its versions."""
        with self._lock:
            kept = self._offers.get((policy_id, additions))
            return None if kept is None else kept.offer

    def keep(self, policy_id: int, additions: Additions, versions: Versions, offer: Offer) -> None:
        """Never evicts the offer just added, however large."""
        key, counted = (policy_id, additions), offer.count_bytes() + additions.count_bytes()
        with self._lock:
            self._drop(key)
            self._offers[key] = _KeptOffer(versions, offer, counted)
            self.bytes += counted
            while self.bytes > self._most_bytes and len(self._offers) > 1:
                self._drop(next(iter(self._offers)))

    def clear(self) -> None:
        with self._lock:
            self._offers.clear()
            self._building.clear()
            self.bytes = 0

    def _drop(self, key: tuple[int, Additions]) -> None:
        kept = self._offers.pop(key, None)
        self.bytes -= 0 if kept is None else kept.bytes


# Apart, so that no crowd of sessions takes the room of policies that others use.
_plain = OfferCache(PLAIN_OFFERS_BYTES)
_own = OfferCache(OWN_OFFERS_BYTES)


def clear() -> None:
    """Clear the caches: after a restore, versions may repeat."""
    _plain.clear()
    _own.clear()
    RENDERED.clear()
    definitions.clear()


remember("offers", clear)


def offer_of_policy(policy_id: int, versions: Versions | None = None) -> Offer:
    """The policy's offer without a session."""
    versions = versions or read_versions(policy_id)
    offer = _plain.find(policy_id, NOTHING, versions)
    if offer is not None:
        return offer
    with _plain.building(policy_id):
        offer = _plain.find(policy_id, NOTHING, versions)
        if offer is None:
            versions, offer = _make(policy_id)
            _plain.keep(policy_id, NOTHING, versions, offer)
        return offer


def offer_of_session(
    session: AgentSession, versions: Versions | None = None, *, for_this_turn: bool = True
) -> Offer:
    """The session's offer; `for_this_turn=False` ignores what narrows only the current turn."""
    versions = versions or read_versions(session.policy_id)
    plain = offer_of_policy(session.policy_id, versions)
    additions = additions_of(session, plain.policy, for_this_turn=for_this_turn)
    if additions == NOTHING:
        return plain
    offer = _own.find(session.policy_id, additions, versions)
    if offer is None:
        offer = _find_own(session, plain, additions)
        _own.keep(session.policy_id, additions, versions, offer)
    return offer


def additions_of(session: AgentSession, policy: DomainPolicy, *, for_this_turn: bool = True) -> Additions:
    """Only additions that matter under the policy, so that most sessions have none."""
    narrowing = [session.visible, session.turn_visible if for_this_turn else None]
    is_auto = policy.mode is Mode.AUTO
    by_percent = is_auto and policy.threshold_unit is ThresholdUnit.CONTEXT_PERCENT
    window = window_of(session, policy) if by_percent else policy.window
    return Additions(
        visible=tuple(tuple(globs) for globs in narrowing if globs is not None),
        builtins=builtins.digest_of(session.builtin_tools) if session.builtin_tools else "",
        context_window=window if window != policy.window else None,
        is_over=is_past_context_used(session, policy),
    )


def window_of(session: AgentSession, policy: DomainPolicy) -> int:
    """The context window that counts: the session's own, else its model's, else the policy's."""
    return session.context_window or known_models.find_window(session.model) or policy.window


def reads_window(policy: DomainPolicy) -> bool:
    """Whether a context window can change what the policy defers."""
    units = (ThresholdUnit.CONTEXT_PERCENT, ThresholdUnit.CONTEXT_USED)
    return policy.mode is Mode.AUTO and policy.threshold_unit in units


def is_past_context_used(session: AgentSession, policy: DomainPolicy) -> bool:
    """Whether the conversation is long enough for the policy to defer, now or on an earlier turn."""
    if policy.mode is not Mode.AUTO or policy.threshold_unit is not ThresholdUnit.CONTEXT_USED:
        return False
    facts = SessionFacts(
        context_window=window_of(session, policy),
        context_used=session.context_used,
        is_past_context_used=session.context_was_over,
    )
    return measure_threshold(policy, ThresholdTotals(), facts).over is True


def _make(policy_id: int) -> tuple[Versions, Offer]:
    """Reads rows and version until both belong together: the same version before and after."""
    for _ in range(ATTEMPTS):
        versions = read_versions(policy_id)
        offer = _patch_kept(policy_id, versions) or _read_whole(policy_id, versions)
        if read_versions(policy_id) == versions:
            return versions, offer
    raise Unavailable("the decisions change faster than they can be read; try again")


def _patch_kept(policy_id: int, versions: Versions) -> Offer | None:
    """The previous offer with the changes since; None where everything has to be read."""
    kept = _plain.find_last(policy_id, NOTHING)
    if kept is None or kept.basis is None or kept.basis != decided.read_basis(policy_id):
        return None
    # Numbers that went back are those of a backup.
    if kept.versions.policy != versions.policy or any(map(gt, kept.versions, versions)):
        return None
    changed = decided.read_since(policy_id, kept.policy, kept.versions.catalog)
    if changed is None:
        return None
    patch = Patch(changed, _describe_servers(), _read_locked(kept.policy))
    patched = patch_offer(kept, patch, versions)
    # A tool whose row is gone is among no changes.
    return patched if len(patched.tools) == decided.count_decided(policy_id, kept.policy) else None


def _read_whole(policy_id: int, versions: Versions) -> Offer:
    policy = read_policy(Policy.objects.get(pk=policy_id))
    basis = decided.read_basis(policy_id)
    tools = _decide_now(policy) if basis is None else decided.read_all(policy_id, policy)
    return _assemble(policy, versions, tools, _read_locked(policy), basis=basis)


def _read_locked(policy: DomainPolicy) -> tuple[ToolFacts, ...]:
    if policy.quarantine is Quarantine.OFF:
        return ()
    held = Tool.objects.listed().held_by(policy.quarantine)
    return tuple(locked_tools((one.facts for one in read_facts(held)), policy))


def _decide_now(policy: DomainPolicy) -> list[OfferedTool]:
    """Decides here, for a policy that no worker has decided yet or that is being decided again."""
    known = list(read_facts(Tool.objects.listed()))
    texts = _read_listed_texts()
    by_name = {one.facts.name: texts[one.id] for one in known if one.id in texts}
    return _pair(decide((one.facts for one in known), policy).decisions, by_name)


def offers_of_decisions(proposals: Sequence[tuple[DomainPolicy, Sequence[Decision]]]) -> list[Offer]:
    """Offers of policies that are not saved, from decisions about the current tools, hidden ones included."""
    texts = {text.name: text for text in _read_listed_texts().values()}
    missing = {decision.name for _, made in proposals for decision in made} - texts.keys()
    if missing:
        hidden = Tool.objects.filter(hidden=True, gone_at=None, server__enabled=True)
        texts |= {text.name: text for text in _read_texts(hidden, missing).values()}
    described = _describe_servers()
    return [
        _assemble(policy, Versions(policy=0), _pair(made, texts), (), servers=described)
        for policy, made in proposals
    ]


def _read_listed_texts() -> dict[int, ToolText]:
    return _read_texts(Tool.objects.listed())


def _read_texts(tools: QuerySet[Tool], names: Container[str] | None = None) -> dict[int, ToolText]:
    """Of these tools, or of those among them that have one of the names."""
    known = tools.values_list("pk", "digest", "qualified_name")
    return definitions.read_definitions(
        {tool_id: (digest, name) for tool_id, digest, name in known if names is None or name in names}
    )


def _find_own(session: AgentSession, plain: Offer, additions: Additions) -> Offer:
    """Keeps an own offer while the policy's offer has the same content; only its versions move."""
    last = _own.find_last(session.policy_id, additions)
    if last is not None and last.made_of == plain.digest:
        return last.sharing(versions=plain.versions)
    return _make_own(session, plain, additions)


def _make_own(session: AgentSession, plain: Offer, additions: Additions) -> Offer:
    """Uses the policy's stored decisions, except those by its threshold, which counts the session's tools."""
    own = _read_builtins(session, plain)
    facts = SessionFacts(
        context_window=additions.context_window,
        is_past_context_used=additions.is_over,
        visible=additions.visible,
    )
    shown = _narrow(plain.tools, additions.visible)
    own_shown = visible_tools((tool.facts for tool in own), plain.policy, facts)
    totals = _add_up([tool.text for tool in shown], own_shown)
    situation = prepare_rules(plain.policy, measure_safely(plain.policy, totals, facts))
    made = (decide_one(tool, situation) for tool in own_shown)
    tools = (
        *_decide_again(shown, decide_by_threshold(situation)),
        *_pair(made, {tool.text.name: tool.text for tool in own}),
    )
    locked = tuple(locked_tools(plain.locked, plain.policy, facts))
    if len(tools) == len(plain.tools) and locked == plain.locked and all(map(is_, tools, plain.tools)):
        return plain.sharing(made_of=plain.digest)
    own_offer = _assemble(plain.policy, plain.versions, tools, locked, servers=plain.servers)
    return replace(own_offer, made_of=plain.digest)


def _read_builtins(session: AgentSession, plain: Offer) -> Sequence[builtins.Builtin]:
    if not session.builtin_tools:
        return ()
    taken = {*plain.by_name, plain.policy.search_tool_name}
    return builtins.read_builtins(session.builtin_tools, taken=taken)


def _narrow(tools: Sequence[OfferedTool], visible: Iterable[tuple[str, ...]]) -> Sequence[OfferedTool]:
    for globs in visible:
        matches = compile_globs(globs)
        tools = [tool for tool in tools if matches(tool.text)]
    return tools


def _add_up(texts: Sequence[ToolText], own: Sequence[ToolFacts]) -> ThresholdTotals:
    """The sums that thresholds read, over the catalog's tools and the session's own (built-in) ones."""
    counted = sum(text.chars for text in texts if text.kind != Kind.BUILTIN)
    return ThresholdTotals(tools=len(texts) + len(own), chars=counted)


def _decide_again(tools: Sequence[OfferedTool], by_threshold: Rule | None) -> Sequence[OfferedTool]:
    """Decides by the threshold again; rules before it depend on tool and policy alone and stay."""
    if by_threshold is None:
        return tools
    outcome, reason = by_threshold.outcome, by_threshold.reason
    return [
        OfferedTool(tool.text, outcome, reason)
        if tool.reason in _BY_THRESHOLD and tool.reason is not reason
        else tool
        for tool in tools
    ]


def _pair(made: Iterable[Decision], texts: Mapping[str, ToolText]) -> list[OfferedTool]:
    return [OfferedTool(texts[one.name], one.outcome, one.reason) for one in made if one.name in texts]


def _assemble(
    policy: DomainPolicy,
    versions: Versions,
    tools: Iterable[OfferedTool],
    locked: tuple[ToolFacts, ...],
    *,
    servers: Mapping[str, str] | None = None,
    basis: Basis | None = None,
) -> Offer:
    """Leaves out a tool that has the search tool's name."""
    offered = tuple(sorted((tool for tool in tools if tool.reason is not Reason.SEARCH_TOOL), key=_by_name))
    described = _describe_servers() if servers is None else servers
    return Offer(policy, versions, offered, described, locked, basis)


def _by_name(tool: OfferedTool) -> str:
    return tool.name


def _describe_servers() -> dict[str, str]:
    """An admin's line for each server. What a server says of itself reaches no prompt: nobody approves it."""
    return dict(Server.objects.exclude(description="").values_list("name", "description"))
