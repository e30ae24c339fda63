"""Sums of a policy's decided list, kept by adding and subtracting single decisions."""

from collections.abc import Iterable
from dataclasses import dataclass

from catalog.domain.choices import Kind, Outcome
from catalog.domain.thresholds import ThresholdTotals
from catalog.models import DecidedList


@dataclass(frozen=True, slots=True)
class KeptDecision:
    """A stored decision, and the size its tool counted for."""

    kind: str
    chars: int
    outcome: str
    reason: str


@dataclass(frozen=True, slots=True)
class Tally:
    tools: int = 0
    chars: int = 0
    all_chars: int = 0
    deferred: int = 0
    deferred_chars: int = 0

    @classmethod
    def of(cls, decided: DecidedList) -> "Tally":
        return cls(decided.tools, decided.chars, decided.all_chars, decided.deferred, decided.deferred_chars)

    def add(self, decisions: Iterable[KeptDecision]) -> "Tally":
        return self._shift(decisions, +1)

    def take(self, decisions: Iterable[KeptDecision]) -> "Tally":
        return self._shift(decisions, -1)

    def write(self, decided: DecidedList) -> None:
        decided.tools, decided.chars, decided.all_chars = self.tools, self.chars, self.all_chars
        decided.deferred, decided.deferred_chars = self.deferred, self.deferred_chars

    @property
    def totals(self) -> ThresholdTotals:
        """The sums that thresholds read."""
        return ThresholdTotals(tools=self.tools, chars=self.chars)

    def _shift(self, decisions: Iterable[KeptDecision], sign: int) -> "Tally":
        tools = chars = all_chars = deferred = deferred_chars = 0
        for decision in decisions:
            tools += 1
            all_chars += decision.chars
            chars += 0 if decision.kind == Kind.BUILTIN else decision.chars
            if decision.outcome == Outcome.DEFER:
                deferred += 1
                deferred_chars += decision.chars
        return Tally(
            self.tools + sign * tools,
            self.chars + sign * chars,
            self.all_chars + sign * all_chars,
            self.deferred + sign * deferred,
            self.deferred_chars + sign * deferred_chars,
        )
