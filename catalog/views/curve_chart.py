"""The threshold curve as a chart: widths in percent, so that it fits any screen, heights in pixels."""

from collections.abc import Sequence
from dataclasses import dataclass

from catalog.domain.curve import CurveStep, step_at
from catalog.domain.policy import Policy

HEIGHT_PX = 96
LEAST_BAR_PX = 2
ROOM_AT_THE_END = 1.25


@dataclass(frozen=True, slots=True)
class CurveBar:
    """The tokens sent between two thresholds."""

    x_percent: float
    width_percent: float
    y_px: float
    height_px: float
    is_in_force: bool


@dataclass(frozen=True, slots=True)
class CurveChart:
    bars: list[CurveBar]
    mark_percent: float  # where the threshold proposed is
    saved_percent: float | None  # and the one in force, where that is another
    steps: list[CurveStep]
    limit: float
    saved_limit: float
    height_px: int = HEIGHT_PX

    @property
    def is_mark_right(self) -> bool:
        """Whether the label must be on the left of its mark, for lack of room."""
        return self.mark_percent > 50

    @property
    def is_saved_right(self) -> bool:
        return (self.saved_percent or 0) > 50


def draw_curve_chart(curve: Sequence[CurveStep], policy: Policy, saved: Policy) -> CurveChart:
    """The curve of a proposed policy, with the saved threshold if it differs and has the same unit."""
    is_moved = saved.threshold_unit is policy.threshold_unit and saved.limit != policy.limit
    limits = (policy.limit, saved.limit) if is_moved else (policy.limit,)
    end = max(*limits, *(step.threshold for step in curve), 1) * ROOM_AT_THE_END
    tallest = max(*(step.tokens for step in curve), 1)
    ends = [*(step.threshold for step in curve[1:]), end]
    force = step_at(curve, policy.limit)
    bars = [
        _bar(step, until, end, tallest, is_in_force=step is force)
        for step, until in zip(curve, ends, strict=True)
    ]
    saved_percent = _percent(saved.limit, end) if is_moved else None
    return CurveChart(
        bars, _percent(policy.limit, end), saved_percent, list(curve), policy.limit, saved.limit
    )


def _bar(step: CurveStep, until: float, end: float, tallest: int, *, is_in_force: bool) -> CurveBar:
    height = max(LEAST_BAR_PX, round(step.tokens / tallest * HEIGHT_PX, 1))
    x = _percent(step.threshold, end)
    return CurveBar(x, round(_percent(until, end) - x, 2), round(HEIGHT_PX - height, 1), height, is_in_force)


def _percent(value: float, end: float) -> float:
    return round(value / end * 100, 2)
