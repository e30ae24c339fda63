"""Costs of a policy's tool list in tokens: with everything loaded, and as the policy decides.

The sums are those of the list that the agent is sent, search tool and prompt included, so every page shows
the same numbers as the session's own `tokens`.
"""

from dataclasses import dataclass

from catalog.domain.decide import Decided
from catalog.domain.policy import Policy as DomainPolicy
from catalog.models import Policy
from catalog.selectors.totals import BUDGET_SHARE, CONTEXT_WINDOW_TOKENS, CatalogTotals
from sessions.offers import offer_cache
from sessions.offers.offer import Offer
from sessions.offers.rendering.formats import Format, ListForm
from sessions.offers.tool_lists import MCP, ResolvedTools

# In what a policy is warned of: the plain list, and the form that has a limit of its API's.
_WARNED_OF = (MCP, ListForm(Format.ANTHROPIC))


@dataclass(frozen=True, slots=True)
class Cost:
    """In tokens of the `mcp` form, over the tools that the policy shows."""

    tools: int
    deferred: int
    full_tokens: int
    sent_tokens: int
    window_tokens: int
    is_decided: bool = False  # a worker has stored its decisions, which maps and tables show
    warnings: tuple[str, ...] = ()

    @property
    def loaded(self) -> int:
        return self.tools - self.deferred

    @property
    def saved_tokens(self) -> int:
        """Negative where the search tool and the prompt cost more than the deferred tools."""
        return self.full_tokens - self.sent_tokens

    @property
    def more_tokens(self) -> int:
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


def read_cost(policy: Policy | None, totals: CatalogTotals) -> Cost:
    """Without a policy, everything counts as loaded."""
    if policy is None:
        return Cost(totals.tools, 0, totals.tokens, totals.tokens, CONTEXT_WINDOW_TOKENS)
    return cost_of_policy(policy)


def cost_of_policy(policy: Policy) -> Cost:
    return _sum_up(offer_cache.offer_of_policy(policy.pk))


def cost_of_proposal(policy: DomainPolicy, made: Decided) -> Cost:
    """The cost under a policy that is not saved, with the decisions made for it."""
    return _sum_up(offer_cache.offer_of_decisions(policy, made))


def _sum_up(offer: Offer) -> Cost:
    resolved = ResolvedTools(offer)
    tokens = resolved.tokens()
    return Cost(
        tools=len(offer.tools),
        deferred=len(offer.deferred),
        full_tokens=tokens["full"],
        sent_tokens=tokens["sent"],
        window_tokens=offer.policy.window,
        is_decided=offer.basis is not None,
        warnings=tuple(dict.fromkeys(text for form in _WARNED_OF for text in resolved.warnings(form))),
    )


def _bar_percent(share: float) -> float:
    return round(min(1.0, share) * 100, 2)
