"""The page on security names tests that are there, and leaves no threat without one."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/security.md").read_text()
ROWS = dict(re.findall(r"^\| ([TS]\d+) \|(.*)\|$", PAGE, flags=re.MULTILINE))
NAMED = re.findall(r"`(tests/\S+?)::(\S+?)`", PAGE)


@pytest.mark.parametrize("number", range(1, 26))
def test_every_threat_has_a_test(number: int) -> None:
    threat = f"T{number}"
    assert "`tests/" in ROWS[threat], f"{threat} names no test"


@pytest.mark.parametrize(("path", "name"), NAMED, ids=[name for _, name in NAMED])
def test_every_test_that_is_named_is_there(path: str, name: str) -> None:
    scope: list[ast.stmt] = ast.parse((ROOT / path).read_text()).body
    for step in name.split("::"):
        found = [
            node
            for node in scope
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name == step
        ]
        assert found, f"{path} has no {name}"
        scope = found[0].body


def test_page_is_about_many() -> None:
    assert len(NAMED) > 60
