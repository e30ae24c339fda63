"""The five threshold units: what each measures, and when it is over its limit."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from catalog.domain.choices import Kind, ThresholdUnit
from catalog.domain.facts import NO_SESSION, SessionFacts, ToolFacts
from catalog.domain.policy import DEFAULT_THRESHOLDS, Policy
from catalog.domain.sizes import tokens_of


@dataclass(frozen=True, slots=True)
class ThresholdTotals:
    """The sums that thresholds read, over all visible tools. Adding one tool is one step."""

    tools: int = 0
    chars: int = 0  # of `mcp` and `plugin` tools only
    unmeasured: int = 0  # tools among those whose size cannot be computed

    def with_tool(self, tool: ToolFacts) -> "ThresholdTotals":
        if tool.kind is Kind.BUILTIN:
            return replace(self, tools=self.tools + 1)
        return ThresholdTotals(
            self.tools + 1, self.chars + (tool.chars or 0), self.unmeasured + (tool.chars is None)
        )

    @property
    def known_chars(self) -> int | None:
        return None if self.unmeasured else self.chars


@dataclass(frozen=True, slots=True)
class Measure:
    """A measured value against its limit, both in the unit; percents are of the context window.

    `over` is None when value or limit cannot be computed.
    """

    unit: ThresholdUnit
    value: float | None
    limit: float
    over: bool | None

    def to_mapping(self) -> dict[str, object]:
        return {"unit": str(self.unit), "value": self.value, "limit": self.limit}


@dataclass(frozen=True, slots=True)
class _Reading:
    value: float | None
    is_over: Callable[[float], bool]


def sum_tools(tools: Iterable[ToolFacts]) -> ThresholdTotals:
    count = chars = unmeasured = 0
    for tool in tools:
        count += 1
        if tool.kind is not Kind.BUILTIN:
            chars += tool.chars or 0
            unmeasured += tool.chars is None
    return ThresholdTotals(count, chars, unmeasured)


def measure_threshold(policy: Policy, totals: ThresholdTotals, session: SessionFacts = NO_SESSION) -> Measure:
    """Measure the policy's own unit."""
    return _measure_unit(policy.threshold_unit, policy.limit, policy, totals, session)


def measure_thresholds(
    policy: Policy, totals: ThresholdTotals, session: SessionFacts = NO_SESSION
) -> tuple[Measure, ...]:
    """Measure every unit: the policy's own against its threshold, the others against their defaults."""
    limits = {**DEFAULT_THRESHOLDS, policy.threshold_unit: policy.limit}
    return tuple(_measure_unit(unit, limit, policy, totals, session) for unit, limit in limits.items())


def _measure_unit(
    unit: ThresholdUnit, limit: float, policy: Policy, totals: ThresholdTotals, session: SessionFacts
) -> Measure:
    reading = _READ[unit](policy, totals, session)
    known = reading.value is not None and math.isfinite(limit)
    return Measure(unit, reading.value, limit, reading.is_over(limit) if known else None)


def _read_chars(_policy: Policy, totals: ThresholdTotals, _session: SessionFacts) -> _Reading:
    return _Reading(totals.known_chars, lambda limit: totals.chars > limit)


def _read_tokens(_policy: Policy, totals: ThresholdTotals, _session: SessionFacts) -> _Reading:
    tokens = tokens_of(totals.chars)
    return _Reading(None if totals.unmeasured else tokens, lambda limit: tokens > limit)


def _read_tools(_policy: Policy, totals: ThresholdTotals, _session: SessionFacts) -> _Reading:
    return _Reading(totals.tools, lambda limit: totals.tools >= limit)


def _read_context_percent(policy: Policy, totals: ThresholdTotals, session: SessionFacts) -> _Reading:
    hundredfold, window = tokens_of(totals.chars) * 100, _window(policy, session)
    percent = None if totals.unmeasured else hundredfold / window
    return _Reading(percent, lambda limit: hundredfold > limit * window)


def _read_context_used(policy: Policy, _totals: ThresholdTotals, session: SessionFacts) -> _Reading:
    if session.context_used is None:
        return _Reading(0, lambda _limit: session.is_past_context_used)
    hundredfold, window = session.context_used * 100, _window(policy, session)
    return _Reading(
        hundredfold / window, lambda limit: session.is_past_context_used or hundredfold >= limit * window
    )


def _window(policy: Policy, session: SessionFacts) -> int:
    return policy.window if session.context_window is None else session.context_window


_READ: Mapping[ThresholdUnit, Callable[[Policy, ThresholdTotals, SessionFacts], _Reading]] = {
    ThresholdUnit.CHARS: _read_chars,
    ThresholdUnit.TOKENS: _read_tokens,
    ThresholdUnit.TOOLS: _read_tools,
    ThresholdUnit.CONTEXT_PERCENT: _read_context_percent,
    ThresholdUnit.CONTEXT_USED: _read_context_used,
}
