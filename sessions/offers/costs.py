"""What an agent of a policy pays for its tool list: now, under a change, and which parts that has.

The sums are those of the list that the agent is sent, search tool and prompt included, so every page shows
the same numbers as the session's own `tokens`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from catalog.domain.curve import CurveStep
from catalog.domain.decide import Decided, Decision
from catalog.domain.flips import DryRun, ServerFlips
from catalog.domain.policy import Policy as DomainPolicy
from catalog.domain.sizes import ListTokens, measure_list
from catalog.models import Policy
from catalog.selectors.totals import BUDGET_SHARE, CONTEXT_WINDOW_TOKENS, CatalogTotals
from sessions.offers import offer_cache
from sessions.offers.offer import Offer
from sessions.offers.rendering.formats import Format, ListForm
from sessions.offers.tool_lists import MCP, ResolvedTools

SERVERS_SHOWN = 10
# In what a policy is warned of: the plain list, and the form that has a limit of its API's.
_WARNED_OF = (MCP, ListForm(Format.ANTHROPIC))


@dataclass(frozen=True, slots=True)
class Cost:
    """In tokens of the `mcp` form, over the tools that the policy shows."""

    tools: int
    deferred: int
    tokens: ListTokens
    window_tokens: int
    is_decided: bool = False  # a worker has stored its decisions, which maps and tables show
    warnings: tuple[str, ...] = ()

    @property
    def loaded(self) -> int:
        return self.tools - self.deferred

    @property
    def full_tokens(self) -> int:
        return self.tokens.full

    @property
    def sent_tokens(self) -> int:
        return self.tokens.sent

    @property
    def saved_tokens(self) -> int:
        """Negative where the search tool and the prompt cost more than the deferred tools."""
        return self.tokens.saved

    @property
    def more_tokens(self) -> int:
        """What deferring costs beyond loading every tool."""
        return -self.saved_tokens

    @property
    def saved_share(self) -> float:
        return self.saved_tokens / self.full_tokens if self.full_tokens else 0.0

    @property
    def full_share(self) -> float:
        return self.full_tokens / self.window_tokens

    @property
    def sent_share(self) -> float:
        return self.sent_tokens / self.window_tokens

    @property
    def full_bar_percent(self) -> float:
        """The width of a bar, at most 100."""
        return _bar_percent(self.full_share)

    @property
    def sent_bar_percent(self) -> float:
        return _bar_percent(self.sent_share)

    @property
    def is_over_budget(self) -> bool:
        return self.sent_share > BUDGET_SHARE


@dataclass(frozen=True, slots=True)
class CostChange:
    """What a change would do to the cost. The tokens of all parts add up to `tokens`.

    `servers` are the heaviest; `others` sums up the rest, None where there is none. `overhead_tokens` is what
    the search tool and the prompt change.
    """

    now: Cost
    then: Cost
    tools: int
    servers: Sequence[ServerFlips] = field(default_factory=list)
    others: ServerFlips | None = None
    other_servers: int = 0
    overhead_tokens: int = 0

    @property
    def tokens(self) -> int:
        return self.then.sent_tokens - self.now.sent_tokens


def read_cost(policy: Policy | None, totals: CatalogTotals) -> Cost:
    """Without a policy, everything counts as loaded."""
    if policy is None:
        tokens = measure_list(all_chars=totals.chars, tool_chars=totals.chars)
        return Cost(totals.tools, 0, tokens, CONTEXT_WINDOW_TOKENS)
    return cost_of_policy(policy)


def cost_of_policy(policy: Policy) -> Cost:
    return _sum_up(offer_cache.offer_of_policy(policy.pk))


def costs_of_proposals(proposals: Iterable[tuple[DomainPolicy, Sequence[Decision]]]) -> list[Cost]:
    """The costs under policies that are not saved, each with the decisions made for it."""
    return [_sum_up(offer) for offer in offer_cache.offers_of_decisions(list(proposals))]


def explain_change(now: Cost, then: Cost, dry_run: DryRun) -> CostChange:
    """The difference between two costs by server."""
    overhead = _overhead(then) - _overhead(now)
    rows = _round_off(dry_run.servers, then.tokens.tools - now.tokens.tools)
    shown, rest = rows[:SERVERS_SHOWN], rows[SERVERS_SHOWN:]
    others = ServerFlips(
        server="",
        to_load=sum(row.to_load for row in rest),
        to_defer=sum(row.to_defer for row in rest),
        tokens=sum(row.tokens for row in rest),
    )
    return CostChange(
        now=now,
        then=then,
        tools=len(dry_run.flips),
        servers=shown,
        others=others if rest else None,
        other_servers=len(rest),
        overhead_tokens=overhead,
    )


def cost_curve(
    curve: Sequence[CurveStep], policy: DomainPolicy, *, made: Decided, cost: Cost
) -> list[CurveStep]:
    """The steps of a threshold curve with what an agent would pay at each, search tool and prompt included.

    `cost` is that of the decisions `made`: a step that decides the same costs the same.
    """
    deferred = _names_deferred(made.decisions)
    return [
        _cost_step(step, policy, cost if _names_deferred(step.decisions) == deferred else None)
        for step in curve
    ]


def _sum_up(offer: Offer) -> Cost:
    resolved = ResolvedTools(offer)
    return Cost(
        tools=len(offer.tools),
        deferred=len(offer.deferred),
        tokens=resolved.measure(),
        window_tokens=offer.policy.window,
        is_decided=offer.basis is not None,
        warnings=tuple(dict.fromkeys(text for form in _WARNED_OF for text in resolved.warnings(form))),
    )


def _names_deferred(decisions: Iterable[Decision]) -> set[str]:
    return {decision.name for decision in decisions if decision.is_deferred}


def _cost_step(step: CurveStep, policy: DomainPolicy, known: Cost | None) -> CurveStep:
    """A step that defers nothing has no search tool and no prompt: its definitions are all that is sent."""
    if not step.deferred:
        return step
    cost = known or costs_of_proposals([(policy, step.decisions)])[0]
    return replace(step, tokens=cost.sent_tokens)


def _overhead(cost: Cost) -> int:
    return cost.tokens.search_tool + cost.tokens.prompt


def _round_off(rows: Sequence[ServerFlips], tokens: int) -> list[ServerFlips]:
    """Gives the one token that rounding may leave over to the heaviest server, so that all add up.

    A larger difference is none of rounding: a worker is deciding meanwhile.
    """
    left = tokens - sum(row.tokens for row in rows)
    if not rows or abs(left) != 1:
        return list(rows)
    return [replace(rows[0], tokens=rows[0].tokens + left), *rows[1:]]


def _bar_percent(share: float) -> float:
    return round(min(1.0, share) * 100, 2)
