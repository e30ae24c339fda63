"""What an agent of one policy pays for tool definitions: with everything loaded, and as it is decided."""

from dataclasses import dataclass

from catalog.domain.sizes import tokens_of
from catalog.models import DecidedList, Policy
from catalog.selectors.totals import BUDGET_SHARE, CONTEXT_WINDOW_TOKENS, Totals


@dataclass(frozen=True, slots=True)
class Cost:
    """In tokens of definitions, over the tools that the policy shows. The search tool is in no sum."""

    tools: int
    deferred: int
    full_tokens: int
    loaded_tokens: int
    window_tokens: int
    is_decided: bool  # False until a worker has decided this policy for the first time

    @property
    def loaded(self) -> int:
        return self.tools - self.deferred

    @property
    def saved_tokens(self) -> int:
        return self.full_tokens - self.loaded_tokens

    @property
    def saved_share(self) -> float:
        return self.saved_tokens / self.full_tokens if self.full_tokens else 0.0

    @property
    def full_share(self) -> float:
        return self.full_tokens / self.window_tokens

    @property
    def loaded_share(self) -> float:
        return self.loaded_tokens / self.window_tokens

    @property
    def full_bar_percent(self) -> float:
        """The width of a bar that cannot leave its track."""
        return _bar_percent(self.full_share)

    @property
    def loaded_bar_percent(self) -> float:
        return _bar_percent(self.loaded_share)

    @property
    def is_over_budget(self) -> bool:
        return self.loaded_share > BUDGET_SHARE


def read_cost(policy: Policy | None, totals: Totals) -> Cost:
    """From the kept decisions; before there are any, everything counts as loaded."""
    window = policy.context_window if policy else CONTEXT_WINDOW_TOKENS
    decided = DecidedList.objects.filter(policy=policy).first()
    if decided is None:
        return Cost(totals.tools, 0, totals.tokens, totals.tokens, window, is_decided=False)
    return Cost(
        tools=decided.tools,
        deferred=decided.deferred,
        full_tokens=tokens_of(decided.all_chars),
        loaded_tokens=tokens_of(decided.all_chars - decided.deferred_chars),
        window_tokens=window,
        is_decided=True,
    )


def _bar_percent(share: float) -> float:
    return round(min(1.0, share) * 100, 2)
