"""Sizes of tool definitions, in characters and estimated tokens."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

CHARS_PER_TOKEN = 4
# Made once: `json.dumps` makes one for every text.
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True, slots=True)
class Size:
    chars: int

    @property
    def tokens(self) -> int:
        return tokens_of(self.chars)


def measure_definition(name: str, description: str | None, input_schema: Mapping[str, object] | None) -> Size:
    """Measure one definition; `name` is the tool's own name, not the qualified one.

    Raises ValueError, TypeError or RecursionError for a schema that is not JSON.
    """
    schema = {} if input_schema is None else input_schema
    return Size(len(name) + len(description or "") + len(compact_json(schema)))


def tokens_of(chars: int) -> int:
    return -(-chars // CHARS_PER_TOKEN)


def tokens_of_text(text: str) -> int:
    return tokens_of(len(text))


def compact_json(value: object) -> str:
    """JSON without spaces and with non-ASCII kept; raises ValueError for NaN and the infinities."""
    return _ENCODER.encode(value)
