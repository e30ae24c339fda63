"""No test changes the clock of the whole process."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
CHANGES_THE_PROCESS = re.compile(r'setattr\(\s*time\b|setattr\(\s*"(?:[\w.]+\.)?time\.\w+"')


def test_clocks_are_set_for_one_module() -> None:
    found = [
        str(path.relative_to(TESTS))
        for path in TESTS.rglob("*.py")
        if path != Path(__file__) and CHANGES_THE_PROCESS.search(path.read_text())
    ]
    assert found == []
