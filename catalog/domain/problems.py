"""Collects mistakes with their places, so that a reader can report all of them at once."""

import json
import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from catalog.domain.errors import FieldProblem, InvalidInput
from catalog.domain.values import BadValueError, name_type

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_$-]+")
_MAX_KEY_CHARS = 80
_CAPITAL = re.compile(r"(?<!^)([A-Z])")

Value = TypeVar("Value")
Default = TypeVar("Default")


def join_place(place: str, key: object) -> str:
    """`servers` and `github` make `servers.github`; a key of odd characters is quoted: `servers["a b"]`."""
    if isinstance(key, int):
        return f"{place}[{key}]"
    text = str(key)[:_MAX_KEY_CHARS]
    if not _PLAIN_KEY.fullmatch(text):
        return f"{place}[{json.dumps(text)}]"
    return f"{place}.{text}" if place else text


def snake_case(name: str) -> str:
    return _CAPITAL.sub(r"_\1", name).lower()


class Problems:
    """The mistakes found so far."""

    def __init__(self) -> None:
        self._found: list[FieldProblem] = []

    @property
    def found(self) -> tuple[FieldProblem, ...]:
        return tuple(self._found)

    def add(self, place: str, message: str) -> None:
        self._found.append(FieldProblem(place, message))

    def add_all(self, error: InvalidInput) -> None:
        self._found.extend(error.errors)

    def read(
        self, place: str, value: object, read: Callable[[object], Value], default: Default
    ) -> Value | Default:
        """Read one value; on a mistake, report it and return the default."""
        try:
            return read(value)
        except BadValueError as error:
            self.add(place if error.index is None else join_place(place, error.index), str(error))
        return default

    def read_key(
        self, place: str, mapping: Mapping[str, object], key: str, read: Callable[[object], Value]
    ) -> Value | None:
        """The value under a camelCase or snake_case key; None for null, a mistake or no key."""
        spelled = key if key in mapping else snake_case(key)
        value = mapping.get(spelled)
        return None if value is None else self.read(join_place(place, spelled), value, read, None)

    def read_object(self, place: str, value: object) -> Mapping[str, object]:
        """An object, or an empty one in place of null or a mistake."""
        if isinstance(value, Mapping):
            return value
        if value is not None:
            self.add(place, f"must be an object, not {name_type(value)}")
        return {}

    def raise_if_any(self) -> None:
        if self._found:
            raise InvalidInput(self._found)
