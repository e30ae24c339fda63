"""Preview of a change to tools or servers under every policy."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from catalog.domain.choices import Loading
from catalog.domain.decide import Decided, decide
from catalog.domain.facts import ToolFacts
from catalog.domain.flips import DryRun, compare
from catalog.domain.policy import Policy as DomainPolicy
from catalog.models import Policy, Server, Tool
from catalog.selectors.facts import read_facts, read_policy

# Facts of tools that may be in a list, by the row's id.
Facts = dict[int, ToolFacts]


@dataclass(frozen=True, slots=True)
class PolicyFlips:
    """What a change would do under one policy; `rules` are the policy's fields, `after` its decisions."""

    policy: Policy
    rules: DomainPolicy
    after: Decided
    dry_run: DryRun


def preview_server(*, server: Server, defer_loading: bool | None) -> list[PolicyFlips]:
    """The tools that another `deferLoading` would flip; empty where the server has no listed tools."""
    present = _read_listed()
    proposed = {
        tool_id: replace(facts, server_defers=defer_loading) if facts.server == server.name else facts
        for tool_id, facts in present.items()
    }
    return _compare(present, proposed) if proposed != present else []


def preview_tools(
    *, tool_ids: Collection[int], loading: Loading | None, hidden: bool | None
) -> list[PolicyFlips]:
    """The tools that setting many alike would flip; None leaves a setting as it is."""
    present, chosen = _read_listed(), frozenset(tool_ids)
    return _compare(present, _set_loading(_set_hidden(present, chosen, hidden), chosen, loading))


def _compare(present: Facts, proposed: Facts) -> list[PolicyFlips]:
    """Decides the whole catalog twice per policy: as it is, and as it would be."""
    chars = {facts.name: facts.chars for facts in (*present.values(), *proposed.values())}
    return [
        _compare_under(policy, present.values(), proposed.values(), chars)
        for policy in Policy.objects.order_by("slug")
    ]


def _compare_under(
    policy: Policy, present: Iterable[ToolFacts], proposed: Iterable[ToolFacts], chars: dict[str, int | None]
) -> PolicyFlips:
    rules = read_policy(policy)
    after = decide(proposed, rules)
    return PolicyFlips(policy, rules, after, compare(decide(present, rules), after, chars))


def _read_listed() -> Facts:
    return {known.id: known.facts for known in read_facts(Tool.objects.listed())}


def _set_hidden(present: Facts, chosen: frozenset[int], hidden: bool | None) -> Facts:
    if hidden is None:
        return present
    if hidden:
        return {tool_id: facts for tool_id, facts in present.items() if tool_id not in chosen}
    unhidden = Tool.objects.filter(hidden=True, gone_at=None, server__enabled=True)
    return present | {known.id: known.facts for known in read_facts(unhidden) if known.id in chosen}


def _set_loading(shown: Facts, chosen: frozenset[int], loading: Loading | None) -> Facts:
    if loading is None:
        return shown
    return {
        tool_id: replace(facts, loading=loading) if tool_id in chosen else facts
        for tool_id, facts in shown.items()
    }
