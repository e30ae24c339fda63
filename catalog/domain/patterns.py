"""Parses a search pattern, measures its cost, and writes it for the engine that runs it.

The syntax is that of Python's `re`, whose own parser is used. The engine gets a pattern written from the
parsed tree, so that the two cannot interpret one text differently: what was measured is what runs.
"""

import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from re import _constants as ops  # type: ignore[attr-defined, unused-ignore]  # by mypy's version
from re import _parser as parser  # type: ignore[attr-defined, unused-ignore]
from typing import Any

from catalog.domain.errors import InvalidInput
from catalog.domain.limits import PATTERN_NODES

FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "a": re.ASCII, "u": re.UNICODE}
_PLACES = {
    ops.AT_BEGINNING: "^",
    ops.AT_BEGINNING_STRING: r"\A",
    ops.AT_END: "$",
    ops.AT_END_STRING: r"\Z",
    ops.AT_BOUNDARY: r"\b",
    ops.AT_NON_BOUNDARY: r"\B",
}
_CATEGORIES = {
    ops.CATEGORY_DIGIT: r"\d",
    ops.CATEGORY_NOT_DIGIT: r"\D",
    ops.CATEGORY_SPACE: r"\s",
    ops.CATEGORY_NOT_SPACE: r"\S",
    ops.CATEGORY_WORD: r"\w",
    ops.CATEGORY_NOT_WORD: r"\W",
}
_REPEATS = {ops.MAX_REPEAT: "", ops.MIN_REPEAT: "?", ops.POSSESSIVE_REPEAT: "+"}

PatternNode = tuple[Any, Any]


def read_pattern(text: str) -> str:
    """The same pattern in a normal form, ignoring case unless its own flags say otherwise.

    Raises `InvalidInput` where it is invalid or too expensive.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of syntax that a later Python may read otherwise
            tree = parser.parse(text, re.IGNORECASE)
        if _measure(tree) > PATTERN_NODES:
            raise InvalidInput.at("pattern", "the pattern repeats too much")
        return _flag_group(tree.state.flags, 0, _write(tree))
    except re.error as error:
        where = f" (position {error.pos})" if error.pos is not None else ""
        raise InvalidInput.at("pattern", f"not a regular expression: {error.msg}{where}") from error
    except (OverflowError, RecursionError, ValueError) as error:
        raise InvalidInput.at("pattern", f"not a regular expression: {error}") from error


def _measure(nodes: Iterable[PatternNode]) -> int:
    """How many nodes the engine allocates: a repeated part counts once for each required time, plus once for
    all optional ones.
    """
    return sum(_measure_one(operation, value) for operation, value in nodes)


def _measure_one(operation: Any, value: Any) -> int:
    if operation in _REPEATS:
        least, most, inner = value
        copies = int(least) + int(most > least)
        return 1 + copies * _measure(inner)
    return 1 + sum(map(_measure, _inner(operation, value)))


def _inner(operation: Any, value: Any) -> Sequence[Any]:
    if operation is ops.BRANCH:
        return list(value[1])
    if operation is ops.SUBPATTERN:
        return [value[3]]
    if operation is ops.GROUPREF_EXISTS:
        return [part for part in value[1:] if part is not None]
    if operation in (ops.ASSERT, ops.ASSERT_NOT):
        return [value[1]]
    if operation is ops.ATOMIC_GROUP:
        return [value]
    return [[(ops.LITERAL, 0)] * len(value)] if operation is ops.IN else []


def _write(nodes: Iterable[PatternNode]) -> str:
    return "".join(_write_one(operation, value) for operation, value in nodes)


def _write_one(operation: Any, value: Any) -> str:
    if operation in _REPEATS:
        least, most, inner = value
        end = "" if most is ops.MAXREPEAT else most
        return f"(?:{_write(inner)}){{{least},{end}}}{_REPEATS[operation]}"
    return _WRITERS[operation](value)


def _write_literal(code: int) -> str:
    """Letters and digits as they are, everything else escaped by its code."""
    letter = chr(code)
    return letter if letter.isascii() and letter.isalnum() else f"\\U{code:08x}"


def _write_set(members: Sequence[PatternNode]) -> str:
    return f"[{''.join(_write_member(operation, value) for operation, value in members)}]"


def _write_member(operation: Any, value: Any) -> str:
    if operation is ops.NEGATE:
        return "^"
    if operation is ops.RANGE:
        return f"{_write_literal(value[0])}-{_write_literal(value[1])}"
    return _CATEGORIES[value] if operation is ops.CATEGORY else _write_literal(value)


def _write_group(value: Any) -> str:
    number, added, removed, inner = value
    written = _flag_group(added, removed, _write(inner))
    return written if number is None else f"({written})"


def _flag_group(added: int, removed: int, written: str) -> str:
    on, off = (
        "".join(letter for letter, flag in FLAGS.items() if flags & flag) for flags in (added, removed)
    )
    return f"(?{on}{'-' if off else ''}{off}:{written})"


def _write_condition(value: Any) -> str:
    number, then, otherwise = value
    return f"(?({number}){_write(then)}|{_write(otherwise or ())})"


def _write_look(value: Any, sign: str) -> str:
    direction, inner = value
    return f"(?{'<' if direction < 0 else ''}{sign}{_write(inner)})"


_WRITERS: Mapping[Any, Callable[[Any], str]] = {
    ops.LITERAL: _write_literal,
    ops.NOT_LITERAL: lambda code: f"[^{_write_literal(code)}]",
    ops.ANY: lambda _value: ".",
    ops.IN: _write_set,
    ops.AT: _PLACES.__getitem__,
    ops.BRANCH: lambda value: f"(?:{'|'.join(map(_write, value[1]))})",
    ops.SUBPATTERN: _write_group,
    ops.ATOMIC_GROUP: lambda inner: f"(?>{_write(inner)})",
    ops.GROUPREF: lambda number: f"\\g<{number}>",
    ops.GROUPREF_EXISTS: _write_condition,
    ops.ASSERT: lambda value: _write_look(value, "="),
    ops.ASSERT_NOT: lambda value: _write_look(value, "!"),
    ops.FAILURE: lambda _value: "(?!)",
}
