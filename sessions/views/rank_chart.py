"""A chart that compares rankers: a column each, and lines between the same tools of neighbouring columns."""

from collections.abc import Sequence
from dataclasses import dataclass

from sessions.offers.rendering.wire import ToolText
from sessions.services.search_trials import RankerTrial

ROW_REM = 3.25  # as the style sheet's `--rank-height`


@dataclass(frozen=True, slots=True)
class RankedTool:
    """`move` is how many places higher the tool is than in the first column; None where it is not there."""

    tool: ToolText
    score: float
    move: int | None

    @property
    def distance(self) -> int:
        return abs(self.move or 0)


@dataclass(frozen=True, slots=True)
class RankLine:
    """From the place in the previous column to the place in this one, in rows from the top."""

    start: float
    end: float

    @property
    def course(self) -> str:
        if self.start == self.end:
            return "level"
        return "rises" if self.end < self.start else "falls"


@dataclass(frozen=True, slots=True)
class RankerColumn:
    """`lost` are tools of the first column that are not in this one."""

    ranker: str
    entries: list[RankedTool]
    lines: list[RankLine]
    lost: list[ToolText]


@dataclass(frozen=True, slots=True)
class RankChart:
    columns: list[RankerColumn]

    @property
    def rows(self) -> int:
        return max((len(column.entries) for column in self.columns), default=0)

    @property
    def height_rem(self) -> float:
        return self.rows * ROW_REM

    @property
    def is_alike(self) -> bool:
        """Whether all rankers find the same tools in the same order."""
        orders = {tuple(entry.tool.name for entry in column.entries) for column in self.columns}
        return len(orders) == 1


def draw_rank_chart(trials: Sequence[RankerTrial]) -> RankChart:
    first = _places(trials[0])
    neighbours = [None, *trials[:-1]]
    return RankChart(
        [
            _column(trial, trials[0], first, {} if before is None else _places(before))
            for trial, before in zip(trials, neighbours, strict=True)
        ]
    )


def _column(
    trial: RankerTrial, base: RankerTrial, first: dict[str, int], before: dict[str, int]
) -> RankerColumn:
    places = _places(trial)
    return RankerColumn(
        ranker=str(trial.ranker),
        entries=[
            RankedTool(
                tool=one.tool.text,
                score=one.hit.score,
                move=first[one.tool.name] - place if one.tool.name in first else None,
            )
            for place, one in enumerate(trial.found)
        ],
        lines=[RankLine(before[name] + 0.5, place + 0.5) for name, place in places.items() if name in before],
        lost=[one.tool.text for one in base.found if one.tool.name not in places],
    )


def _places(trial: RankerTrial) -> dict[str, int]:
    return {one.tool.name: place for place, one in enumerate(trial.found)}
