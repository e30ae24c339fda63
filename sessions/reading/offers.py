"""Finds the offer in force, and keeps it in the process for as long as nothing it came from has changed.

A session that brings tools along, narrows what it sees or has a window of its own gets an offer of its own,
decided from the same facts; all sessions that add the same share it.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from threading import Lock, RLock

from catalog.domain.approvals import held_by
from catalog.domain.choices import Mode, Outcome, Quarantine, Reason, ThresholdUnit
from catalog.domain.decide import Decided, decide, locked_tools
from catalog.domain.errors import Unavailable
from catalog.domain.facts import SessionFacts, ToolFacts
from catalog.domain.policy import Policy as DomainPolicy
from catalog.domain.prompt import first_sentence
from catalog.domain.thresholds import Totals, measure
from catalog.models import DecidedList, Decision, Policy, Server, Tool
from catalog.selectors.facts import read_facts, read_policy
from sessions.domain import builtins
from sessions.domain.wire import ToolText
from sessions.models import AgentSession
from sessions.reading import definitions
from sessions.reading.offer import Offer, OfferedTool
from sessions.reading.versions import Versions, read_versions

ATTEMPTS = 10
KEPT_OFFERS = 200


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
_facts: dict[int, tuple[Offer, tuple[ToolFacts, ...]]] = {}


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
        offer = _make_own(session, plain, additions)
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
        policy = read_policy(Policy.objects.get(pk=policy_id))
        is_decided = DecidedList.objects.filter(policy_id=policy_id, policy_version__gt=0).exists()
        tools = _read_decided(policy_id, policy) if is_decided else _decide_now(policy)
        locked = _read_locked(policy)
        if read_versions(policy_id) == versions:
            return versions, _assemble(policy, versions, tools, locked)
    raise Unavailable("the decisions change faster than they can be read; try again")


def _read_decided(policy_id: int, policy: DomainPolicy) -> list[OfferedTool]:
    """While the decisions follow a change, a definition that quarantine holds back is out already."""
    decisions = Decision.objects.filter(policy_id=policy_id)
    let_through = decisions.exclude(tool__approval__in=held_by(policy.quarantine))
    rows = list(let_through.values_list("tool_id", "tool__digest", "outcome", "reason"))
    texts = definitions.read_texts({row[0]: row[1] for row in rows})
    return [
        OfferedTool(texts[tool_id], Outcome(outcome), Reason(reason))
        for tool_id, _, outcome, reason in rows
        if tool_id in texts
    ]


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


def _make_own(session: AgentSession, plain: Offer, additions: Additions) -> Offer:
    own = builtins.read_builtins(session.builtin_tools, taken={*plain.by_name, plain.policy.search_tool_name})
    facts = SessionFacts(
        context_window=additions.context_window,
        is_past_context_used=additions.is_over,
        visible=additions.visible,
    )
    by_name = {tool.name: tool.text for tool in plain.tools} | {tool.text.name: tool.text for tool in own}
    tools = (*_facts_of(session.policy_id, plain), *(tool.facts for tool in own))
    decided = decide(tools, plain.policy, facts)
    locked = tuple(locked_tools(plain.locked, plain.policy, facts))
    return _assemble(plain.policy, plain.versions, _pair(decided, by_name), locked, plain.servers)


def _facts_of(policy_id: int, plain: Offer) -> tuple[ToolFacts, ...]:
    """Read when the first session of a policy needs its own decisions, then kept with the offer."""
    kept = _facts.get(policy_id)
    if kept is None or kept[0] is not plain:
        tools = Tool.objects.filter(pk__in=Decision.objects.filter(policy_id=policy_id).values("tool_id"))
        known = tuple(one.facts for one in read_facts(tools) if one.facts.name in plain.by_name)
        kept = _facts[policy_id] = (plain, known)
    return kept[1]


def _pair(decided: Decided, texts: Mapping[str, ToolText]) -> list[OfferedTool]:
    return [
        OfferedTool(texts[one.name], one.outcome, one.reason)
        for one in decided.decisions
        if one.name in texts
    ]


def _assemble(
    policy: DomainPolicy,
    versions: Versions,
    tools: Iterable[OfferedTool],
    locked: tuple[ToolFacts, ...],
    servers: Mapping[str, str] | None = None,
) -> Offer:
    """The search tool is in no list of tools, whatever a server calls its own."""
    offered = tuple(sorted((tool for tool in tools if tool.reason is not Reason.SEARCH_TOOL), key=_by_name))
    described = _describe_servers() if servers is None else servers
    digest = _digest(policy, offered, described, locked=len(locked))
    return Offer(policy, versions, offered, described, digest, locked)


def _by_name(tool: OfferedTool) -> str:
    return tool.name


def _describe_servers() -> dict[str, str]:
    rows = Server.objects.values_list("name", "description", "instructions")
    return {name: description or first_sentence(instructions) for name, description, instructions in rows}


def _digest(
    policy: DomainPolicy, tools: Iterable[OfferedTool], servers: Mapping[str, str], *, locked: int
) -> str:
    content = hashlib.sha256(f"{policy!r} {locked}".encode("utf-8", "surrogatepass"))
    for tool in tools:
        line = f"{tool.name} {tool.text.digest} {tool.outcome} {tool.reason} {servers.get(tool.text.server)}"
        content.update(line.encode("utf-8", "surrogatepass"))
    return content.hexdigest()[:20]
