"""Requests are counted by the minute."""

from catalog.domain.rates import Window


def test_next_minute_is_a_new_one() -> None:
    now = [0.0]
    window = Window(clock=lambda: now[0])
    assert [window.count(1), window.count(1), window.count(2)] == [1, 2, 1]
    now[0] = 60.0
    assert window.count(1) == 1
