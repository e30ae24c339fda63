"""The dry run of a bulk edit: what setting many tools alike would flip."""

from collections.abc import Collection
from dataclasses import replace

from catalog.domain.choices import Loading
from catalog.domain.decide import decide
from catalog.domain.facts import ToolFacts
from catalog.domain.flips import DryRun, compare
from catalog.models import Policy, Tool
from catalog.selectors.facts import read_facts, read_policy


def preview_bulk(
    *, policy: Policy, tool_ids: Collection[int], loading: Loading | None, hidden: bool | None
) -> DryRun:
    """Decide the whole catalog twice, as it is and as it would be; unset leaves as it is."""
    chosen, wanted = frozenset(tool_ids), read_policy(policy)
    present = {known.id: known.facts for known in read_facts(Tool.objects.listed())}
    proposed = _propose(present, chosen, loading, hidden)
    chars = {facts.name: facts.chars for facts in (*present.values(), *proposed.values())}
    return compare(decide(present.values(), wanted), decide(proposed.values(), wanted), chars)


def _propose(
    present: dict[int, ToolFacts], chosen: frozenset[int], loading: Loading | None, hidden: bool | None
) -> dict[int, ToolFacts]:
    shown = dict(present)
    if hidden is True:
        shown = {tool_id: facts for tool_id, facts in present.items() if tool_id not in chosen}
    elif hidden is False:
        unhidden = Tool.objects.filter(hidden=True, gone_at=None, server__enabled=True)
        shown |= {known.id: known.facts for known in read_facts(unhidden) if known.id in chosen}
    if loading is None:
        return shown
    return {
        tool_id: replace(facts, loading=loading) if tool_id in chosen else facts
        for tool_id, facts in shown.items()
    }
