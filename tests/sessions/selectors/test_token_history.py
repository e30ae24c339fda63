"""Tokens by turn, for the chart."""

import pytest

from sessions.selectors.token_history import TokenHistory, TurnTokens


@pytest.mark.parametrize(
    ("sent", "full", "is_off"), [(400, 3_000, False), (400, 4_000, False), (400, 4_001, True), (0, 0, False)]
)
def test_everything_loaded_is_off_the_scale_past_ten_times_the_session(
    sent: int, full: int, is_off: bool
) -> None:
    points = [TurnTokens(0, min(sent, 100), full), TurnTokens(1, sent, full)]
    history = TokenHistory(points=points, turns=2, sent=2 * sent, full=2 * full)
    assert history.is_off_scale is is_off
    assert history.last_full == full


def test_no_points_are_no_chart() -> None:
    history = TokenHistory(points=[], turns=0, sent=0, full=0)
    assert (history.is_off_scale, history.last_full) == (False, 0)
