"""Names every memory that a process keeps of stored state, and empties all of them at once.

A memo of a function whose answer hangs on its arguments alone is never wrong, and is not named here; which
memos these are, `tests/toolsearch_site/rules/test_process_memory.py` says.
"""

from collections.abc import Callable

_resets: dict[str, Callable[[], object]] = {}


def remember(name: str, reset: Callable[[], object]) -> None:
    """Name a memory and how to empty it. Called by the module that keeps it, where that is defined."""
    if name in _resets:
        raise ValueError(f"{name} is the name of another memory")
    _resets[name] = reset


def names() -> list[str]:
    return sorted(_resets)


def reset() -> None:
    """Empty them all: after a restore, versions may repeat; a test knows nothing of the one before it."""
    for empty in _resets.values():
        empty()
