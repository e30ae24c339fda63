"""Preview of a change to a policy, a server or a tool: what would flip, before anything is saved."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from catalog.domain.choices import Approval, Loading
from catalog.domain.curve import CurveStep, draw_curve
from catalog.domain.decide import Decided, decide, visible_tools
from catalog.domain.facts import ToolFacts
from catalog.domain.flips import DryRun, compare
from catalog.domain.policy import Policy as DomainPolicy
from catalog.domain.problems import Problems
from catalog.domain.thresholds import Measure, measure_thresholds, sum_tools
from catalog.models import Policy, Tool
from catalog.selectors.facts import read_facts, read_policy
from catalog.selectors.review import trusted_on


@dataclass(frozen=True, slots=True)
class Proposal:
    """Policy fields, servers' `deferLoading` by name, tools' `loading` by qualified name."""

    policy: Mapping[str, object] = field(default_factory=dict)
    servers: Mapping[str, bool | None] = field(default_factory=dict)
    tools: Mapping[str, Loading] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Preview:
    """Decisions before and after, the flips, and the policy's thresholds as they would be."""

    before: Decided
    after: Decided
    dry_run: DryRun
    readings: tuple[Measure, ...]
    curve: tuple[CurveStep, ...]


def preview(*, policy: Policy, proposal: Proposal) -> Preview:
    """Decide the whole catalog twice: as it is, and as it would be. Raises InvalidInput with
    every mistake.
    """
    facts = [known.facts for known in read_facts(Tool.objects.listed())]
    now, then = read_policy(policy), read_policy(policy).change(proposal.policy)
    _check_names(proposal, facts)
    trusted = trusted_on(then.quarantine)
    proposed = [_apply(tool, proposal, trusted) for tool in facts]
    before, after = decide(facts, now), decide(proposed, then)
    return Preview(
        before=before,
        after=after,
        dry_run=compare(before, after, {tool.name: tool.chars for tool in facts}),
        readings=measure_visible(proposed, then),
        curve=draw_curve(proposed, then),
    )


def measure_visible(tools: Iterable[ToolFacts], policy: DomainPolicy) -> tuple[Measure, ...]:
    """The catalog's value in every unit against its limit, for what the policy shows."""
    return measure_thresholds(policy, sum_tools(visible_tools(tools, policy)))


def _apply(tool: ToolFacts, proposal: Proposal, trusted: Collection[str]) -> ToolFacts:
    if tool.name in trusted:
        tool = replace(tool, approval=Approval.APPROVED)
    if tool.name in proposal.tools:
        tool = replace(tool, loading=proposal.tools[tool.name])
    if tool.server in proposal.servers:
        tool = replace(tool, server_defers=proposal.servers[tool.server])
    return tool


def _check_names(proposal: Proposal, facts: Iterable[ToolFacts]) -> None:
    """Refuses unknown names, for which a preview would wrongly show that nothing flips."""
    servers, tools = {tool.server for tool in facts}, {tool.name for tool in facts}
    problems = Problems()
    for name in proposal.servers:
        if name not in servers:
            problems.add(f"servers.{name}", "is no server with tools")
    for name in proposal.tools:
        if name not in tools:
            problems.add(f"tools.{name}", "is no tool of the catalog")
    problems.raise_if_any()
