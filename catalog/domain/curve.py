"""The threshold curve: tokens sent as a function of the threshold."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from catalog.domain.choices import Mode
from catalog.domain.decide import Decision, decide_one, measure_safely, prepare_rules, visible_tools
from catalog.domain.facts import NO_SESSION, SessionFacts, ToolFacts
from catalog.domain.policy import MAX_THRESHOLD, Policy
from catalog.domain.rules import Situation
from catalog.domain.sizes import tokens_of
from catalog.domain.thresholds import Measure, sum_tools


@dataclass(frozen=True, slots=True)
class CurveStep:
    """What is sent from `threshold` on (just past it, unless `is_inclusive`) up to the next step.

    `tokens` are those of the definitions sent in full.
    """

    threshold: float
    is_inclusive: bool
    loaded: int
    deferred: int
    tokens: int
    decisions: tuple[Decision, ...] = field(default=(), compare=False, repr=False)


def draw_curve(
    tools: Iterable[ToolFacts], policy: Policy, session: SessionFacts = NO_SESSION
) -> tuple[CurveStep, ...]:
    """The steps of the curve in the policy's unit, as if its mode were `auto`.

    A single step means that no threshold makes a difference.
    """
    policy = replace(policy, mode=Mode.AUTO)
    shown = visible_tools(tools, policy, session)
    totals = sum_tools(shown)

    def read_at(threshold: float) -> Measure:
        return measure_safely(replace(policy, threshold=threshold), totals, session)

    lowest, highest = read_at(0), read_at(MAX_THRESHOLD)
    first = _take_step(shown, prepare_rules(policy, lowest))
    if lowest.over == highest.over or lowest.value is None:
        return (first,)
    last = _take_step(shown, prepare_rules(policy, highest))
    is_inclusive = read_at(lowest.value).over is False
    return first, replace(last, threshold=lowest.value, is_inclusive=is_inclusive)


def step_at(curve: Sequence[CurveStep], threshold: float) -> CurveStep:
    """The step that applies at a threshold."""
    reached = [
        step
        for step in curve
        if threshold > step.threshold or (step.is_inclusive and threshold == step.threshold)
    ]
    return reached[-1]


def _take_step(tools: Sequence[ToolFacts], situation: Situation) -> CurveStep:
    decisions = tuple(decide_one(tool, situation) for tool in tools)
    chars = [tool.chars or 0 for tool, made in zip(tools, decisions, strict=True) if not made.is_deferred]
    return CurveStep(
        threshold=0,
        is_inclusive=True,
        loaded=len(chars),
        deferred=len(tools) - len(chars),
        tokens=tokens_of(sum(chars)),
        decisions=decisions,
    )
