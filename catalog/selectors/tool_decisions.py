"""Stored decisions about single tools with their reasons, for tables and a tool's page."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from catalog.domain import decide
from catalog.domain.choices import Outcome, Reason
from catalog.domain.facts import ToolFacts
from catalog.domain.rules import Rule
from catalog.domain.thresholds import Measure
from catalog.models import DecidedList, Decision, Policy, Tool
from catalog.selectors.facts import read_facts, read_policy

# Each deciding rule in a reader's words: they finish the sentences `Loads: …` and `Deferred: …`.
REASON_WORDS: Mapping[Reason, str] = {
    Reason.SEARCH_TOOL: "it is the search tool",
    Reason.SEARCH_OFF: "search is off in this policy",
    Reason.NEVER_DEFER: "a never-defer pattern matches it",
    Reason.ALWAYS_DEFER: "an always-defer pattern matches it",
    Reason.TOOL_ALWAYS: "the tool is set to always load",
    Reason.TOOL_DEFER: "the tool is set to defer",
    Reason.SERVER_DEFER: "its server is set to defer",
    Reason.META_ALWAYS_LOAD: "its definition asks to be loaded",
    Reason.SERVER_LOAD: "its server is set to load",
    Reason.BUILTIN: "built-in tools load",
    Reason.MODE_ALWAYS: "the policy always defers",
    Reason.OVER_THRESHOLD: "the tools are over the threshold",
    Reason.UNDER_THRESHOLD: "the tools are under the threshold",
    Reason.UNCERTAIN: "the size cannot be told, so it loads",
    Reason.DISCOVERED: "a search found it",
}
# Sessions alone discover, and the search tool is in no catalog: neither is in a policy's decided list.
KEPT_REASONS = tuple(reason for reason in Reason if reason not in {Reason.DISCOVERED, Reason.SEARCH_TOOL})


@dataclass(frozen=True, slots=True)
class Verdict:
    outcome: Outcome
    reason: Reason

    @property
    def is_deferred(self) -> bool:
        return self.outcome == Outcome.DEFER


@dataclass(frozen=True, slots=True)
class PolicyVerdict:
    """`verdict` is None where the policy does not list the tool; `next` is what the next rule
    would decide.
    """

    policy: Policy
    verdict: Verdict | None
    next: Verdict | None
    is_decided: bool


def verdicts_of(policy: Policy | None, tools: Iterable[Tool]) -> dict[int, Verdict]:
    """By tool id, in one query; without tools that the policy does not list."""
    if policy is None:
        return {}
    rows = Decision.objects.filter(policy=policy, tool__in=[tool.pk for tool in tools])
    return {
        tool_id: Verdict(Outcome(outcome), Reason(reason))
        for tool_id, outcome, reason in rows.values_list("tool_id", "outcome", "reason")
    }


def explain_tool(tool: Tool) -> list[PolicyVerdict]:
    """The tool's decision under every policy. Evaluates this tool's rules again, to name the next one."""
    facts = next((known.facts for known in read_facts(Tool.objects.filter(pk=tool.pk))), None)
    lists = {decided.policy_id: decided for decided in DecidedList.objects.all()}
    kept = {row.policy_id: row for row in Decision.objects.filter(tool=tool)}
    return [
        _explain(policy, lists.get(policy.pk), kept.get(policy.pk), facts) for policy in Policy.objects.all()
    ]


def _explain(
    policy: Policy, decided: DecidedList | None, row: Decision | None, facts: ToolFacts | None
) -> PolicyVerdict:
    if decided is None or row is None or facts is None:
        return PolicyVerdict(policy, None, None, is_decided=decided is not None)
    verdict = Verdict(Outcome(row.outcome), Reason(row.reason))
    rules = _applying(policy, decided, facts)
    return PolicyVerdict(policy, verdict, _after(verdict, rules), is_decided=True)


def _applying(policy: Policy, decided: DecidedList, facts: ToolFacts) -> Sequence[Rule]:
    wanted = read_policy(policy)
    reading = Measure(wanted.threshold_unit, None, wanted.limit, decided.over)
    return decide.explain_decision(facts, decide.prepare_rules(wanted, reading))


def _after(verdict: Verdict, rules: Sequence[Rule]) -> Verdict | None:
    reasons = [rule.reason for rule in rules]
    position = reasons.index(verdict.reason) + 1 if verdict.reason in reasons else 0
    coming = rules[position : position + 1]
    return Verdict(coming[0].outcome, coming[0].reason) if coming else None
