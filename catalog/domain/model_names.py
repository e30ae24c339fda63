"""Under which pattern of the table of models a model's name falls."""

from collections.abc import Iterable
from fnmatch import fnmatchcase


def order_patterns(pattern: str) -> tuple[int, str]:
    """The longest first: of several that fit a name, the longest counts."""
    return -len(pattern), pattern


def fits(pattern: str, model: str) -> bool:
    return fnmatchcase(model.lower(), pattern.lower())


def choose_pattern(model: str, patterns: Iterable[str]) -> str | None:
    """None when the model is unknown."""
    return next((pattern for pattern in sorted(patterns, key=order_patterns) if fits(pattern, model)), None)
