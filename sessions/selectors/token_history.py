"""Tokens of a session's tool list by turn, beside those of eager loading."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sessions.models import AgentSession

MOST_POINTS = 200
OFF_SCALE_TIMES = 10


@dataclass(frozen=True, slots=True)
class TurnTokens:
    """The last known numbers of one turn."""

    turn: int
    sent: int
    full: int

    @property
    def saved(self) -> int:
        return self.full - self.sent


@dataclass(frozen=True, slots=True)
class TokenHistory:
    """`points` may skip turns where there are very many; the sums are over all turns."""

    points: Sequence[TurnTokens]
    turns: int
    sent: int
    full: int

    @property
    def saved(self) -> int:
        return self.full - self.sent

    @property
    def more(self) -> int:
        """What deferring costs beyond eager loading."""
        return -self.saved

    @property
    def last_full(self) -> int:
        return self.points[-1].full if self.points else 0

    @property
    def is_off_scale(self) -> bool:
        """Whether the session, drawn beside everything loaded, would be a line on zero."""
        most_sent = max((point.sent for point in self.points), default=0)
        return max((point.full for point in self.points), default=0) > OFF_SCALE_TIMES * max(most_sent, 1)

    @property
    def saved_share(self) -> float:
        return self.saved / self.full if self.full else 0.0


def read_token_history(session: AgentSession, tokens: Mapping[str, int]) -> TokenHistory:
    """`tokens` are those of the current state, the last point."""
    known: dict[int, TurnTokens] = {}
    rows = session.events.order_by("at", "pk").values_list("turn", "tokens_sent", "tokens_full")
    for turn, sent, full in rows:
        known[turn] = TurnTokens(turn, sent, full)
    known[session.turn] = TurnTokens(session.turn, tokens["sent"], tokens["full"])
    points = [known[turn] for turn in sorted(known)]
    return TokenHistory(
        points=_thin_out(points),
        turns=len(points),
        sent=sum(point.sent for point in points),
        full=sum(point.full for point in points),
    )


def _thin_out(points: Sequence[TurnTokens]) -> list[TurnTokens]:
    """Every n-th point, always including the last."""
    step = -(-len(points) // MOST_POINTS)
    return list(points[::-1][::step])[::-1] if step > 1 else list(points)
