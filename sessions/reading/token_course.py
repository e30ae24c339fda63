"""What a session's tool list cost, turn by turn, beside what eager loading would have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sessions.models import AgentSession

MOST_POINTS = 200


@dataclass(frozen=True, slots=True)
class Point:
    """One turn: the last that is known of it."""

    turn: int
    sent: int
    full: int

    @property
    def saved(self) -> int:
        return self.full - self.sent


@dataclass(frozen=True, slots=True)
class Course:
    """`points` may leave turns out where there are very many; the sums are over every turn known."""

    points: Sequence[Point]
    turns: int
    sent: int
    full: int

    @property
    def saved(self) -> int:
        return self.full - self.sent

    @property
    def saved_share(self) -> float:
        return self.saved / self.full if self.full else 0.0


def read_course(session: AgentSession, tokens: Mapping[str, int]) -> Course:
    """`tokens` are those of the present state, which end the course."""
    known: dict[int, Point] = {}
    rows = session.events.order_by("at", "pk").values_list("turn", "tokens_sent", "tokens_full")
    for turn, sent, full in rows:
        known[turn] = Point(turn, sent, full)
    known[session.turn] = Point(session.turn, tokens["sent"], tokens["full"])
    points = [known[turn] for turn in sorted(known)]
    return Course(
        points=_thin_out(points),
        turns=len(points),
        sent=sum(point.sent for point in points),
        full=sum(point.full for point in points),
    )


def _thin_out(points: Sequence[Point]) -> list[Point]:
    """Every so many points, the last one always among them."""
    step = -(-len(points) // MOST_POINTS)
    return list(points[::-1][::step])[::-1] if step > 1 else list(points)
