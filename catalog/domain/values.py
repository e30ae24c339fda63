"""Readers of single JSON values: each returns a valid value or raises BadValueError with what it expects.

A message never repeats the given value, which may be a secret.
"""

import math
import re
from datetime import timedelta
from enum import StrEnum
from typing import TypeVar

from catalog.domain.globs import measure_globs
from catalog.domain.limits import (
    GLOB_CHARS,
    GLOB_LIST_GLOBS,
    GLOB_WILDCARDS,
    GLOB_WORK,
    GLOB_WORK_CONTAINED,
    GLOB_WORK_PATTERN,
)

_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")
_DURATION = re.compile(r"([0-9]{1,9}) ?(second|minute|hour|day|s|m|h|d)s?")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}

Choice = TypeVar("Choice", bound=StrEnum)


class BadValueError(ValueError):
    """An invalid value; `index` is the position of a wrong item in a list."""

    def __init__(self, message: str, index: int | None = None) -> None:
        super().__init__(message)
        self.index = index


def is_storable(text: str) -> bool:
    return not _UNSTORABLE.search(text)


def read_flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise BadValueError(f"must be true or false, not {name_type(value)}")


def read_text(value: object) -> str:
    """Text without characters that databases or encodings refuse."""
    if isinstance(value, str) and is_storable(value):
        return value
    if isinstance(value, str):
        raise BadValueError("must be text without NUL and without half characters")
    raise BadValueError(f"must be text, not {name_type(value)}")


def read_number(value: object, *, least: float, most: float) -> float:
    """A finite number; one without a fraction comes back as an int."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadValueError(f"must be a number, not {name_type(value)}")
    if not (isinstance(value, int) or math.isfinite(value)) or not least <= value <= most:
        raise BadValueError(f"must be a number from {least:,} to {most:,}")
    return int(value) if value == int(value) else value


def read_whole_number(value: object, *, least: int, most: int) -> int:
    number = value if isinstance(value, bool) else read_number(value, least=least, most=most)
    if isinstance(value, bool | float):  # 5.0 too: JSON writes whole numbers without a fraction
        raise BadValueError("must be a whole number")
    return int(number)


def read_choice(value: object, choices: type[Choice]) -> Choice:
    if isinstance(value, str) and value in set(choices):
        return choices(value)
    raise BadValueError(f"must be one of {', '.join(choices)}")


def read_matching(value: object, pattern: re.Pattern[str], wanted: str) -> str:
    text = read_text(value)
    if pattern.fullmatch(text):
        return text
    raise BadValueError(f"must be {wanted}")


def read_text_list(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise BadValueError(f"must be a list of texts, not {name_type(value)}")
    for index, item in enumerate(value):
        if not isinstance(item, str):
            raise BadValueError(f"must be text, not {name_type(item)}", index)
    return tuple(value)


def read_globs(value: object) -> tuple[str, ...]:
    globs = read_text_list(value)
    if len(globs) > GLOB_LIST_GLOBS:
        raise BadValueError(f"must hold at most {GLOB_LIST_GLOBS:,} patterns")
    for index, glob in enumerate(globs):
        if not 1 <= len(glob) <= GLOB_CHARS:
            raise BadValueError(f"must have 1 to {GLOB_CHARS} characters", index)
        if sum(map(glob.count, "*?[")) > GLOB_WILDCARDS:
            raise BadValueError(f"must have at most {GLOB_WILDCARDS} wildcards", index)
        if not is_storable(glob):
            raise BadValueError("must be text without NUL and without half characters", index)
    if measure_globs(globs) > GLOB_WORK:
        raise BadValueError(
            f"must hold at most {GLOB_WORK // GLOB_WORK_PATTERN} patterns with wildcards inside, or "
            f"{GLOB_WORK // GLOB_WORK_CONTAINED} of the shape *text*; text, text* and *text are not counted"
        )
    return globs


def read_duration(value: object) -> timedelta:
    """Seconds as a number, or a text such as `30 days` or `12h`."""
    if isinstance(value, timedelta):
        seconds = int(value.total_seconds())
    elif isinstance(value, str):
        seconds = _parse_duration(value)
    else:
        seconds = read_whole_number(value, least=1, most=10**10)
    if not 1 <= seconds <= 10**10:
        raise BadValueError("must be a duration of at least one second")
    return timedelta(seconds=seconds)


def name_type(value: object) -> str:
    """JSON's name for the type of a value, without showing the value."""
    names = {bool: "a boolean", int: "a number", float: "a number", str: "text", type(None): "null"}
    if isinstance(value, list | tuple):
        return "a list"
    return names.get(type(value), "an object")


def _parse_duration(text: str) -> int:
    match = _DURATION.fullmatch(text.strip().lower())
    if not match:
        raise BadValueError("must be a number of seconds, or a duration such as 30 days or 12 hours")
    return int(match[1]) * _SECONDS[match[2][0]]
