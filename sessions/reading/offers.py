"""Finds the offer in force, and keeps it in the process for as long as nothing it came from has changed.

A session that brings tools along, narrows what it sees or has a window of its own gets an offer of its own,
decided from the same facts; all sessions that add the same share it.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import gt
from threading import Lock, RLock

from catalog.domain.choices import Mode, Quarantine, Reason, ThresholdUnit
from catalog.domain.decide import Decided, decide, locked_tools
from catalog.domain.errors import Unavailable
from catalog.domain.facts import SessionFacts, ToolFacts
from catalog.domain.marking import mark_server
from catalog.domain.policy import Policy as DomainPolicy
from catalog.domain.prompt import first_sentence
from catalog.domain.thresholds import Totals, measure
from catalog.models import Decision, Policy, Server, Tool
from catalog.selectors.facts import read_facts, read_policy
from sessions.domain import builtins
from sessions.domain.wire import ToolText
from sessions.models import AgentSession
from sessions.reading import decided, definitions, fingerprints
from sessions.reading.offer import Basis, Offer, OfferedTool
from sessions.reading.patching import Patch, at_versions, patch_offer
from sessions.reading.versions import Versions, read_versions

ATTEMPTS = 10
KEPT_OFFERS = 200
KEPT_INTRODUCTIONS = 4096


@dataclass(frozen=True, slots=True)
class Additions:
    """What a session adds that can change a decision."""

    visible: tuple[tuple[str, ...], ...] = ()
    builtins: str = ""  # a digest
    context_window: int | None = None
    is_over: bool = False


NOTHING = Additions()


class _Shelf:
    """The offers in use: of each policy and additions the last one, the longest unused go first."""

    def __init__(self) -> None:
        self._offers: OrderedDict[tuple[int, Additions], tuple[Versions, Offer]] = OrderedDict()
        self._lock = Lock()
        self.making = RLock()

    def find(self, policy_id: int, additions: Additions, versions: Versions) -> Offer | None:
        key = (policy_id, additions)
        with self._lock:
            kept = self._offers.get(key)
            if kept is None or kept[0] != versions:
                return None
            self._offers.move_to_end(key)
            return kept[1]

    def find_last(self, policy_id: int, additions: Additions) -> Offer | None:
        """Whatever its versions."""
        with self._lock:
            kept = self._offers.get((policy_id, additions))
            return None if kept is None else kept[1]

    def keep(self, policy_id: int, additions: Additions, versions: Versions, offer: Offer) -> None:
        with self._lock:
            self._offers[policy_id, additions] = (versions, offer)
            self._offers.move_to_end((policy_id, additions))
            while len(self._offers) > KEPT_OFFERS:
                self._offers.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._offers.clear()


_shelf = _Shelf()
# With the digest of the offer that they are the facts of.
_facts: dict[int, tuple[str, tuple[ToolFacts, ...]]] = {}


def forget() -> None:
    """Drop what this process remembers: after a restore, versions may repeat."""
    _shelf.clear()
    _facts.clear()
    definitions.forget()


def offer_of_policy(policy_id: int, versions: Versions | None = None) -> Offer:
    """What the policy gives without a session."""
    versions = versions or read_versions(policy_id)
    offer = _shelf.find(policy_id, NOTHING, versions)
    if offer is not None:
        return offer
    with _shelf.making:
        offer = _shelf.find(policy_id, NOTHING, versions)
        if offer is None:
            versions, offer = _make(policy_id)
            _shelf.keep(policy_id, NOTHING, versions, offer)
        return offer


def offer_of_session(
    session: AgentSession, versions: Versions | None = None, *, for_this_turn: bool = True
) -> Offer:
    """What the session may see; `for_this_turn` false leaves out what narrows the present turn only."""
    versions = versions or read_versions(session.policy_id)
    plain = offer_of_policy(session.policy_id, versions)
    additions = additions_of(session, plain.policy, for_this_turn=for_this_turn)
    if additions == NOTHING:
        return plain
    offer = _shelf.find(session.policy_id, additions, versions)
    if offer is None:
        offer = _find_own(session, plain, additions)
        _shelf.keep(session.policy_id, additions, versions, offer)
    return offer


def additions_of(session: AgentSession, policy: DomainPolicy, *, for_this_turn: bool = True) -> Additions:
    """Only what makes a difference under the policy, so that most sessions add nothing."""
    narrowing = [session.visible, session.turn_visible if for_this_turn else None]
    is_auto = policy.mode is Mode.AUTO
    window = session.context_window or None
    reads_window = is_auto and policy.threshold_unit is ThresholdUnit.CONTEXT_PERCENT
    return Additions(
        visible=tuple(tuple(globs) for globs in narrowing if globs is not None),
        builtins=builtins.digest_of(session.builtin_tools) if session.builtin_tools else "",
        context_window=window if reads_window and window != policy.context_window else None,
        is_over=is_past_context_used(session, policy),
    )


def is_past_context_used(session: AgentSession, policy: DomainPolicy) -> bool:
    """Whether the conversation is long enough for the policy to defer, now or on an earlier turn."""
    if policy.mode is not Mode.AUTO or policy.threshold_unit is not ThresholdUnit.CONTEXT_USED:
        return False
    facts = SessionFacts(
        context_window=session.context_window,
        context_used=session.context_used,
        is_past_context_used=session.context_was_over,
    )
    return measure(policy, Totals(), facts).over is True


def _make(policy_id: int) -> tuple[Versions, Offer]:
    """Rows and version change together: the same version before and after means one list."""
    for _ in range(ATTEMPTS):
        versions = read_versions(policy_id)
        offer = _patch_kept(policy_id, versions) or _read_whole(policy_id, versions)
        if read_versions(policy_id) == versions:
            return versions, offer
    raise Unavailable("the decisions change faster than they can be read; try again")


def _patch_kept(policy_id: int, versions: Versions) -> Offer | None:
    """The offer that was in force before, with what has changed since; None where all has to be read."""
    kept = _shelf.find_last(policy_id, NOTHING)
    if kept is None or kept.basis is None or kept.basis != decided.read_basis(policy_id):
        return None
    # Numbers that went back are those of a backup.
    if kept.versions.policy != versions.policy or any(map(gt, kept.versions, versions)):
        return None
    changed = decided.read_since(policy_id, kept.policy, kept.versions.catalog)
    if changed is None:
        return None
    patch = Patch(changed, _describe_servers(kept.policy), _read_locked(kept.policy))
    patched = patch_offer(kept, patch, versions)
    # A tool whose row is gone is among no changes.
    return patched if len(patched.tools) == decided.count(policy_id, kept.policy) else None


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
    """A policy that is too new to have been decided by a worker."""
    known = list(read_facts(Tool.objects.listed()))
    texts = definitions.read_texts(dict(Tool.objects.listed().values_list("pk", "digest")))
    by_name = {one.facts.name: texts[one.id] for one in known if one.id in texts}
    return _pair(decide((one.facts for one in known), policy), by_name)


def _find_own(session: AgentSession, plain: Offer, additions: Additions) -> Offer:
    """An own offer stays while what it was made of is the same to a reader: only its versions move on."""
    last = _shelf.find_last(session.policy_id, additions)
    if last is not None and last.made_of == plain.digest:
        return at_versions(last, plain.versions)
    return _make_own(session, plain, additions)


def _make_own(session: AgentSession, plain: Offer, additions: Additions) -> Offer:
    own = builtins.read_builtins(session.builtin_tools, taken={*plain.by_name, plain.policy.search_tool_name})
    facts = SessionFacts(
        context_window=additions.context_window,
        is_past_context_used=additions.is_over,
        visible=additions.visible,
    )
    by_name = {tool.name: tool.text for tool in plain.tools} | {tool.text.name: tool.text for tool in own}
    tools = (*_facts_of(session.policy_id, plain), *(tool.facts for tool in own))
    decisions = decide(tools, plain.policy, facts)
    locked = tuple(locked_tools(plain.locked, plain.policy, facts))
    own_offer = _assemble(
        plain.policy, plain.versions, _pair(decisions, by_name), locked, servers=plain.servers
    )
    return replace(own_offer, made_of=plain.digest)


def _facts_of(policy_id: int, plain: Offer) -> tuple[ToolFacts, ...]:
    """Read when the first session of a policy needs its own decisions, then kept with the offer."""
    kept = _facts.get(policy_id)
    if kept is None or kept[0] != plain.digest:
        tools = Tool.objects.filter(pk__in=Decision.objects.filter(policy_id=policy_id).values("tool_id"))
        known = tuple(one.facts for one in read_facts(tools) if one.facts.name in plain.by_name)
        kept = _facts[policy_id] = (plain.digest, known)
    return kept[1]


def _pair(made: Decided, texts: Mapping[str, ToolText]) -> list[OfferedTool]:
    return [
        OfferedTool(texts[one.name], one.outcome, one.reason) for one in made.decisions if one.name in texts
    ]


def _assemble(
    policy: DomainPolicy,
    versions: Versions,
    tools: Iterable[OfferedTool],
    locked: tuple[ToolFacts, ...],
    *,
    servers: Mapping[str, str] | None = None,
    basis: Basis | None = None,
) -> Offer:
    """The search tool is in no list of tools, whatever a server calls its own."""
    offered = tuple(sorted((tool for tool in tools if tool.reason is not Reason.SEARCH_TOOL), key=_by_name))
    described = _describe_servers(policy) if servers is None else servers
    fingerprint = fingerprints.add(tool.fingerprint(described) for tool in offered)
    return Offer(policy, versions, offered, described, fingerprint, locked, basis)


def _by_name(tool: OfferedTool) -> str:
    return tool.name


def _describe_servers(policy: DomainPolicy) -> dict[str, str]:
    """An admin's words, else the server's own; not under quarantine, for nobody approves those."""
    rows = Server.objects.values_list("name", "description", "instructions")
    if policy.quarantine is not Quarantine.OFF:
        return {name: description for name, description, _ in rows}
    return {name: description or _introduce(instructions) for name, description, instructions in rows}


@lru_cache(maxsize=KEPT_INTRODUCTIONS)
def _introduce(instructions: str) -> str:
    """The first sentence, unless an admin should look at it before a model does."""
    sentence = first_sentence(instructions)
    return "" if mark_server(instructions=sentence) else sentence
