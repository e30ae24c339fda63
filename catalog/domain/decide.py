"""Decides which tools load now and which wait for a search. In doubt a tool loads, with that reason."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import NamedTuple

from catalog.domain.approvals import held_by
from catalog.domain.choices import Mode, Outcome, Quarantine, Reason
from catalog.domain.facts import NO_SESSION, SessionFacts, ToolFacts
from catalog.domain.globs import compile_globs
from catalog.domain.policy import Policy
from catalog.domain.rules import UNCERTAIN, Rule, Situation, rules_that_hold
from catalog.domain.thresholds import Measure, ThresholdTotals, measure_threshold, sum_tools


class Decision(NamedTuple):
    name: str  # qualified
    server: str
    outcome: Outcome
    reason: Reason

    @property
    def is_deferred(self) -> bool:
        return self.outcome == Outcome.DEFER

    def to_mapping(self) -> dict[str, str]:
        return {
            "name": self.name,
            "server": self.server,
            "decision": str(self.outcome),
            "reason": str(self.reason),
        }


@dataclass(frozen=True, slots=True)
class Decided:
    """The decisions of one policy over its visible tools, in qualified-name order."""

    active: bool  # the rules defer at least one tool, discovered since or not
    measure: Measure
    decisions: tuple[Decision, ...]

    @property
    def over(self) -> bool:
        return self.measure.over is True

    def to_mapping(self) -> dict[str, object]:
        """The answer of `manage.py decide` as plain JSON values."""
        return {
            "active": self.active,
            "over": self.over,
            "measure": self.measure.to_mapping(),
            "decisions": [decision.to_mapping() for decision in self.decisions],
        }


def decide(tools: Iterable[ToolFacts], policy: Policy, session: SessionFacts = NO_SESSION) -> Decided:
    """Say for each visible tool whether it loads now or waits, and by which rule."""
    shown = visible_tools(tools, policy, session)
    reading = measure_safely(policy, sum_tools(shown), session)
    situation = prepare_rules(policy, reading)
    decisions = tuple(decide_one(tool, situation) for tool in sorted(shown, key=attrgetter("name")))
    active = any(decision.is_deferred for decision in decisions)
    return Decided(active, reading, _load_discovered(decisions, shown, session.loaded))


def visible_tools(
    tools: Iterable[ToolFacts], policy: Policy, session: SessionFacts = NO_SESSION
) -> list[ToolFacts]:
    """The tools that policy and session both show, without those that quarantine holds back."""
    held = held_by(policy.quarantine)
    shown = [tool for tool in tools if tool.approval not in held] if held else list(tools)
    return _narrow(shown, policy, session)


def shows_whole(tools: Collection[ToolFacts], policy: Policy) -> bool:
    """Whether the policy gives agents what a server offers beside its tools: resources and prompts have no
    patterns and no approvals, so it has to show the server whole, and to hold nothing back. `tools` are those
    of the server that are listed.
    """
    return shows_all(policy, listed=len(tools), shown=len(visible_tools(tools, policy)))


def shows_all(policy: Policy, *, listed: int, shown: int) -> bool:
    """The same by counts of a server's tools: all that are listed, and those that the policy shows."""
    if policy.quarantine is not Quarantine.OFF:
        return False
    return policy.visible is None or 0 < shown == listed


def locked_tools(
    tools: Iterable[ToolFacts], policy: Policy, session: SessionFacts = NO_SESSION
) -> list[ToolFacts]:
    """The tools that would be shown if they were approved."""
    held = held_by(policy.quarantine)
    return _narrow([tool for tool in tools if tool.approval in held], policy, session) if held else []


def _narrow(shown: list[ToolFacts], policy: Policy, session: SessionFacts) -> list[ToolFacts]:
    for globs in (policy.visible, *session.visible):
        if globs is not None:
            matches = compile_globs(globs)
            shown = [tool for tool in shown if matches(tool)]
    return shown


def measure_safely(policy: Policy, totals: ThresholdTotals, session: SessionFacts = NO_SESSION) -> Measure:
    """Measure the policy's threshold; where that fails the value is unknown, and unknown loads."""
    try:
        return measure_threshold(policy, totals, session)
    except (ArithmeticError, TypeError, ValueError):
        return Measure(policy.threshold_unit, None, policy.limit, None)


def prepare_rules(policy: Policy, reading: Measure) -> Situation:
    """Computes once what all tools share, so that `decide_one` takes constant time."""
    situation = Situation(
        policy, reading.over, compile_globs(policy.never_defer), compile_globs(policy.always_defer)
    )
    return replace(situation, rules=rules_that_hold(situation))


def decide_one(tool: ToolFacts, situation: Situation) -> Decision:
    rule = _first_rule(tool, situation)
    return Decision(tool.name, tool.server, rule.outcome, rule.reason)


def decide_by_threshold(situation: Situation) -> Rule | None:
    """The decision for tools that no other rule decides; None where the policy reads no threshold."""
    return situation.rules[-1] if situation.policy.mode is Mode.AUTO else None


def explain_decision(tool: ToolFacts, situation: Situation) -> tuple[Rule, ...]:
    """Every rule that applies to a tool, in order: the first one decides."""
    applying: list[Rule] = []
    try:
        applying.extend(rule for rule in situation.rules if rule.applies(tool, situation))
    except Exception:  # as in `_first_rule`
        applying.append(UNCERTAIN)
    return tuple(applying)


def _first_rule(tool: ToolFacts, situation: Situation) -> Rule:
    try:
        for rule in situation.rules:
            if rule.applies(tool, situation):
                return rule
    except Exception:  # whatever failed, an agent is better off with the tool than without it
        return UNCERTAIN
    return UNCERTAIN


def _load_discovered(
    decisions: tuple[Decision, ...], tools: Sequence[ToolFacts], loaded: Sequence[str]
) -> tuple[Decision, ...]:
    if not loaded:
        return decisions
    discovered = _names_meant(tools, loaded)
    return tuple(
        decision._replace(outcome=Outcome.LOAD, reason=Reason.DISCOVERED)
        if decision.is_deferred and decision.name in discovered
        else decision
        for decision in decisions
    )


def _names_meant(tools: Sequence[ToolFacts], given: Sequence[str]) -> set[str]:
    """Qualified names as they are; any other name stands for all tools with that own name."""
    qualified = {tool.name for tool in tools}
    bare = {name for name in given if name not in qualified}
    return {name for name in given if name in qualified} | {tool.name for tool in tools if tool.tool in bare}
