"""The message of a search result, for the model and for people."""

from collections.abc import Sequence


def say_matched(names: Sequence[str], loaded: Sequence[str]) -> str:
    return f"Found {_count(len(names))}: {', '.join(names)}.{_say_loaded(loaded)}"


def say_matched_by_meaning(names: Sequence[str], loaded: Sequence[str]) -> str:
    """Where none of the tools has a word of the query."""
    return f"Found {_count(len(names))} by meaning, none by words: {', '.join(names)}.{_say_loaded(loaded)}"


def say_no_match(
    unmatched: Sequence[str], missing: Sequence[str], *, fallback: int, is_cut: bool, locked: int = 0
) -> str:
    lacking = f" No tool has: {', '.join(unmatched)}." if unmatched else ""
    unknown = f" Unknown names: {', '.join(missing)}." if missing else ""
    listing = say_listing(fallback=fallback, is_cut=is_cut, locked=locked)
    return f"No tool matches.{lacking}{unknown} {listing}"


def say_listing(*, fallback: int, is_cut: bool, locked: int = 0) -> str:
    return _say_listed(fallback, is_cut=is_cut) + _say_locked(locked)


def say_inactive() -> str:
    return "Tool search is inactive: nothing is deferred, every tool is loaded already."


def _say_loaded(names: Sequence[str]) -> str:
    return f" Loaded now: {', '.join(names)}." if names else ""


def _say_listed(count: int, *, is_cut: bool) -> str:
    if not count:
        return "No tool is deferred that is not loaded."
    listed = f"The first {count} deferred tools are listed" if is_cut else f"{_count(count)} deferred"
    return f"{listed}; search with words of their names or descriptions."


def _say_locked(count: int) -> str:
    return f" Locked until an admin approves: {_count(count)}." if count else ""


def _count(tools: int) -> str:
    return "1 tool" if tools == 1 else f"{tools} tools"
