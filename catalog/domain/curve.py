"""The threshold curve: tokens sent as a function of the threshold."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from catalog.domain.choices import Mode
from catalog.domain.decide import decide_one, measure_safely, prepare_rules, visible_tools
from catalog.domain.facts import NO_SESSION, SessionFacts, ToolFacts
from catalog.domain.policy import MAX_THRESHOLD, Policy
from catalog.domain.rules import Situation
from catalog.domain.sizes import tokens_of
from catalog.domain.thresholds import Measure, sum_tools


@dataclass(frozen=True, slots=True)
class CurveStep:
    """The tokens sent from `threshold` on (just past it, unless `is_inclusive`) up to the next step."""

    threshold: float
    is_inclusive: bool
    loaded: int
    deferred: int
    tokens: int


def draw_curve(
    tools: Iterable[ToolFacts],
    policy: Policy,
    session: SessionFacts = NO_SESSION,
    *,
    overhead_tokens: int = 0,
) -> tuple[CurveStep, ...]:
    """The steps of the curve in the policy's unit, as if its mode were `auto`.

    A single step means that no threshold makes a difference. `overhead_tokens` is what the search tool and
    the prompt add while anything is deferred.
    """
    policy = replace(policy, mode=Mode.AUTO)
    shown = visible_tools(tools, policy, session)
    totals = sum_tools(shown)

    def read_at(threshold: float) -> Measure:
        return measure_safely(replace(policy, threshold=threshold), totals, session)

    lowest, highest = read_at(0), read_at(MAX_THRESHOLD)
    first = _take_step(shown, prepare_rules(policy, lowest), overhead_tokens)
    if lowest.over == highest.over or lowest.value is None:
        return (first,)
    last = _take_step(shown, prepare_rules(policy, highest), overhead_tokens)
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


def _take_step(tools: Sequence[ToolFacts], situation: Situation, overhead_tokens: int) -> CurveStep:
    loaded = [tool for tool in tools if not decide_one(tool, situation).is_deferred]
    deferred = len(tools) - len(loaded)
    tokens = tokens_of(sum(tool.chars or 0 for tool in loaded)) + (overhead_tokens if deferred else 0)
    return CurveStep(0, is_inclusive=True, loaded=len(loaded), deferred=deferred, tokens=tokens)
