"""Services ask who acts, not only pages: what takes an actor asks for a role, or hands it to what does."""

import ast
from pathlib import Path

import pytest
from django.conf import settings

FOLDERS = ("catalog/services", "sessions/services")
# The record itself: those who write to it have asked.
RECORDS = {"require", "record_change", "record_approvals", "record_account"}


def read_functions() -> dict[str, ast.FunctionDef]:
    """Every function of the services by its name, private ones included."""
    root = Path(settings.BASE_DIR)
    files = [path for folder in FOLDERS for path in (root / folder).rglob("*.py")]
    trees = [ast.parse(path.read_text()) for path in files]
    return {node.name: node for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)}


FUNCTIONS = read_functions()


def takes_actor(function: ast.FunctionDef) -> bool:
    return "actor" in {one.arg for one in (*function.args.args, *function.args.kwonlyargs)}


def calls_with_actor(function: ast.FunctionDef) -> set[str]:
    """The names of what the actor is handed to."""
    found = set()
    for call in ast.walk(function):
        if isinstance(call, ast.Call):
            given = [*call.args, *(word.value for word in call.keywords)]
            if any(isinstance(one, ast.Name) and one.id == "actor" for one in given):
                found.add(ast.unparse(call.func).rpartition(".")[2])
    return found


def asks(name: str, seen: frozenset[str] = frozenset()) -> bool:
    called = calls_with_actor(FUNCTIONS[name]) - seen
    return "require" in called or any(
        asks(one, seen | {name}) for one in called if one in FUNCTIONS and one not in RECORDS
    )


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, one in FUNCTIONS.items()
        if takes_actor(one) and not name.startswith("_") and name not in RECORDS
    ],
)
def test_who_acts_is_asked_for_a_role(name: str) -> None:
    assert asks(name), f"{name} takes an actor and asks for no role: begin it with actors.require"
