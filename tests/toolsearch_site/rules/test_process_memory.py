"""Every memory of a process has a name in one place, and is empty when a test begins."""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from catalog import process_memory

ROOT = Path(__file__).resolve().parents[3]
MEMOS = {"cache", "lru_cache"}
# Their answers hang on their arguments and on the code: they are never out of date.
OF_ARGUMENTS_ALONE = {
    "catalog/domain/globs.py:compile_globs",
    "catalog/domain/marking/definition.py:mark_server",
    "catalog/domain/prompt.py:_choose_samples",
    "catalog/search/scripts.py:script_of",
    "catalog/search/words.py:_remembered_run",
    "catalog/search/words.py:_remembered_runs",
    "catalog/search/words.py:_remembered_terms",
    "catalog/search/wordvectors.py:find_encoder",
    "catalog/selectors/encoder.py:_open",
    "catalog/services/call_targets.py:_write_statement",
    "catalog/upstream/guard.py:_tls_context",
    "catalog/upstream/schema_check.py:_checker",
    "sessions/gateway/arguments.py:_validator",
    "toolsearch_site/cluster/heartbeat.py:product_version",
    "toolsearch_site/edge/api_dispatch.py:_find_kept_view",
    "toolsearch_site/monitoring/metrics.py:_call_counter",
    "toolsearch_site/monitoring/metrics.py:_counter",
    "toolsearch_site/monitoring/metrics.py:_kind_of",
    "toolsearch_site/monitoring/metrics.py:_timer",
}


def find_memos() -> Iterator[tuple[str, bool]]:
    """Every memo at the top of a module, and whether that module says how to empty it."""
    for package in ("catalog", "sessions", "toolsearch_site"):
        for path in sorted((ROOT / package).rglob("*.py")):
            text = path.read_text()
            for name in _memos_of(ast.parse(text)):
                yield f"{path.relative_to(ROOT)}:{name}", f"{name}.cache_clear" in text


def _memos_of(module: ast.Module) -> Iterator[str]:
    for part in module.body:
        match part:
            case ast.FunctionDef(name=name, decorator_list=decorators):
                if any(_is_memo(decorator) for decorator in decorators):
                    yield name
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Call() as maker)):
                if _is_memo(maker):
                    yield name


def _is_memo(node: ast.expr) -> bool:
    called = node.func if isinstance(node, ast.Call) else node
    return isinstance(called, ast.Name) and called.id in MEMOS


def test_every_memo_is_reset_or_hangs_on_its_arguments_alone() -> None:
    memos = dict(find_memos())
    assert {name for name, is_reset in memos.items() if not is_reset} == OF_ARGUMENTS_ALONE


def test_memories_of_stored_state_are_named() -> None:
    importlib.import_module("toolsearch_site.api.mount")
    assert {"offers", "known models", "the opened index", "records not written yet"} <= set(
        process_memory.names()
    )


def test_name_is_one_memory_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_memory, "_resets", {})
    emptied: list[str] = []
    process_memory.remember("a", lambda: emptied.append("a"))
    with pytest.raises(ValueError, match="a is the name"):
        process_memory.remember("a", print)
    process_memory.reset()
    assert emptied == ["a"]
