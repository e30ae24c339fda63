"""Sizes of tool definitions, in characters and estimated tokens."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise

CHARS_PER_TOKEN = 4
# Made once: `json.dumps` makes one for every text.
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True, slots=True)
class Size:
    chars: int

    @property
    def tokens(self) -> int:
        return tokens_of(self.chars)


@dataclass(frozen=True, slots=True)
class ListTokens:
    """What a tool list puts in front of the model, in tokens; the parts add up to `sent`.

    `full` is every tool loaded, without search tool and prompt.
    """

    full: int
    tools: int
    search_tool: int
    prompt: int

    @property
    def sent(self) -> int:
        return self.tools + self.search_tool + self.prompt

    @property
    def saved(self) -> int:
        """Negative where deferring costs more than it saves."""
        return self.full - self.sent

    def to_mapping(self) -> dict[str, int]:
        """The `tokens` of the REST API."""
        return {"full": self.full, "sent": self.sent, "saved": self.saved}


def count_message_bytes(value: object) -> int:
    """The size of a value in a message of the gateway, where every character past ASCII is escaped."""
    return len(json.dumps(value, separators=(",", ":")))


def measure_list(
    *, all_chars: int, tool_chars: int, search_tool_chars: int = 0, prompt_chars: int = 0
) -> ListTokens:
    """The cost of a tool list: `tool_chars` are of what it sends of its tools, `all_chars` of every tool."""
    search_tool, prompt, tools = split_tokens((search_tool_chars, prompt_chars, tool_chars))
    return ListTokens(full=tokens_of(all_chars), tools=tools, search_tool=search_tool, prompt=prompt)


def measure_definition(name: str, description: str | None, input_schema: Mapping[str, object] | None) -> Size:
    """Measure one definition; `name` is the tool's own name, not the qualified one.

    Raises ValueError, TypeError or RecursionError for a schema that is not JSON.
    """
    schema = {} if input_schema is None else input_schema
    return Size(len(name) + len(description or "") + len(compact_json(schema)))


def tokens_of(chars: int) -> int:
    return -(-chars // CHARS_PER_TOKEN)


def split_tokens(chars: Iterable[int], *, before: int = 0) -> list[int]:
    """The tokens of each part, rounded cumulatively: they add up to the tokens of the whole.

    `before` are the characters that the parts are added to.
    """
    ends = map(tokens_of, accumulate(chars, initial=before))
    return [end - start for start, end in pairwise(ends)]


def tokens_of_text(text: str) -> int:
    return tokens_of(len(text))


def compact_json(value: object) -> str:
    """JSON without spaces and with non-ASCII kept; raises ValueError for NaN and the infinities."""
    return _ENCODER.encode(value)
