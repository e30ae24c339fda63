"""The supervisor restarts what dies, slower each time, and leaves nothing running."""

import sys
import threading
import time

import pytest

from tests.harness.instance import wait_for
from toolsearch_site.cluster.supervisor import Program, Supervisor, run_to_end


def run_until(condition_text: str, *programs: Program, times: int = 1) -> list[str]:
    """Run parts until something was said so many times, then stop."""
    lines: list[str] = []
    supervisor = Supervisor(programs, say=lambda label, line: lines.append(f"{label}: {line}"))

    def stop_when_said() -> None:
        wait_for(lambda: sum(condition_text in line for line in lines) >= times, within_seconds=20)
        supervisor.stop()

    threading.Thread(target=stop_when_said, daemon=True).start()
    supervisor.run()
    return lines


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def test_logs_are_passed_through_with_a_label() -> None:
    talk = "import sys, time; print('hello'); print('oops', file=sys.stderr); time.sleep(60)"
    program = Program("web", python(talk))
    assert {"web: hello", "web: oops"} <= set(run_until("oops", program))


def test_parts_share_memory_arenas_unless_an_operator_wants_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    say = "import os, time; print(os.environ['MALLOC_ARENA_MAX'], 'arenas', flush=True); time.sleep(60)"
    monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)
    assert "web: 2 arenas" in run_until("arenas", Program("web", python(say)))
    monkeypatch.setenv("MALLOC_ARENA_MAX", "7")
    assert "web: 7 arenas" in run_until("arenas", Program("web", python(say)))


def test_part_is_told_how_many_connections_it_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "from django.conf import settings; print(settings.POOL['max_size'], 'at most', flush=True)"
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "toolsearch_site.settings")
    program = Program("web", python(f"{code}; import time; time.sleep(60)"), connections=6)
    assert "web: 6 at most" in run_until("at most", program)


def test_dead_part_is_restarted_with_back_off() -> None:
    lines = run_until("restarting", Program("worker", python("raise SystemExit(3)")), times=2)
    restarts = [line for line in lines if "restarting" in line]
    assert restarts[:2] == [
        "up: worker ended with exit code 3; restarting in 1 s",
        "up: worker ended with exit code 3; restarting in 2 s",
    ]


def test_other_parts_go_on_meanwhile() -> None:
    steady = Program("steady", python("import time; print('once', flush=True); time.sleep(60)"))
    lines = run_until("restarting", steady, Program("dying", python("raise SystemExit(1)")), times=2)
    assert lines.count("steady: once") == 1


@pytest.mark.slow
def test_part_that_will_not_stop_is_killed() -> None:
    stubborn = "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf'); time.sleep(60)"
    started = time.monotonic()
    lines = run_until("deaf", Program("stubborn", python(stubborn)))
    assert "did not stop in time; killed" in lines[-1]
    assert time.monotonic() - started < 20


def test_program_that_comes_first_is_labelled_and_its_end_told() -> None:
    lines: list[str] = []
    program = Program("follower", python("print('built'); raise SystemExit(3)"))
    assert run_to_end(program, say=lambda label, line: lines.append(f"{label}: {line}")) == 3
    assert lines == ["follower: built"]
