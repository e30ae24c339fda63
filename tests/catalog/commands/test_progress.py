"""Progress is a bar per server on a terminal, and a line per ended server in a log."""

from io import StringIO

from catalog.management.progress import ProgressBoard


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_terminal_has_a_bar_per_server_redrawn_in_place() -> None:
    out = Terminal()
    board = ProgressBoard(out, ["slack", "github"])
    board.show({"github": "waiting", "slack": "running"})
    board.show({"github": "done", "slack": "failed"})
    first, second = out.getvalue().split("\x1b[F\x1b[F")
    assert first.replace("\x1b[K", "").splitlines() == [
        "github [                    ] waiting",
        "slack  [##########          ] running",
    ]
    assert second.count("[####################]") == 2


def test_log_has_a_line_when_a_server_ends() -> None:
    out = StringIO()
    board = ProgressBoard(out, ["slack", "github"])
    for _ in range(2):
        board.show({"github": "waiting", "slack": "done"})
    board.show({"github": "failed", "slack": "done"})
    assert out.getvalue() == "[1/2] slack: done\n[2/2] github: failed\n"


def test_more_servers_than_fit_are_told_line_by_line() -> None:
    out = Terminal()
    names = [f"server-{number}" for number in range(100)]
    ProgressBoard(out, names).show(dict.fromkeys(names, "done"))
    assert len(out.getvalue().splitlines()) == 100
    assert "\x1b" not in out.getvalue()
