"""Progress output: a bar per server on a terminal, else a line per finished server."""

from collections.abc import Mapping, Sequence
from typing import TextIO

BAR_CHARS = 20
MAX_BARS = 30
UP_ONE_LINE = "\x1b[F"
CLEAR_LINE = "\x1b[K"

# How much of a bar a state fills: a refresh says that it began and that it ended, nothing between.
FILLED = {"waiting": 0.0, "running": 0.5, "done": 1.0, "failed": 1.0}


class ProgressBoard:
    def __init__(self, out: TextIO, names: Sequence[str]) -> None:
        self._out = out
        self._names = sorted(names)
        self._width = max((len(name) for name in names), default=0)
        self._is_drawn = False
        self._ended: set[str] = set()

    def show(self, states: Mapping[str, str]) -> None:
        """Draw the states by server name; call again when they may have changed."""
        if self._out.isatty() and len(self._names) <= MAX_BARS:
            self._redraw(states)
        else:
            self._tell_ended(states)
        self._out.flush()

    def _redraw(self, states: Mapping[str, str]) -> None:
        if self._is_drawn:
            self._out.write(UP_ONE_LINE * len(self._names))
        for name in self._names:
            bar = "#" * round(FILLED[states[name]] * BAR_CHARS)
            self._out.write(f"{name:<{self._width}} [{bar:<{BAR_CHARS}}] {states[name]}{CLEAR_LINE}\n")
        self._is_drawn = True

    def _tell_ended(self, states: Mapping[str, str]) -> None:
        for name in self._names:
            if states[name] in {"done", "failed"} and name not in self._ended:
                self._ended.add(name)
                self._out.write(f"[{len(self._ended)}/{len(self._names)}] {name}: {states[name]}\n")
