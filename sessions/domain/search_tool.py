"""The search tool as each form takes it, and the providers' own in its place."""

from collections.abc import Mapping
from typing import Any

from catalog.domain.query import MAX_PATTERN_CHARS, MAX_QUERY_CHARS
from catalog.domain.sizes import measure_definition
from sessions.domain.formats import Format, Hosted, ListForm

DESCRIPTION = (
    "Find and load tools that are not listed yet. Give words for what the tool should do, and the best"
    " matches can be called afterwards. `select:name,other_name` loads tools by name; `+word` demands that"
    " word in the tool's name; an empty query lists what there is."
)
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "query": {
            "type": "string",
            "maxLength": MAX_QUERY_CHARS,
            "description": "Words for what the tool should do.",
        },
        "pattern": {
            "type": "string",
            "maxLength": MAX_PATTERN_CHARS,
            "description": "In place of a query: a regular expression over names and descriptions.",
        },
        "max_results": {"type": "integer", "minimum": 1, "maximum": 50},
    },
}
# What the provider's own search is called in the prompt and in the list.
HOSTED_NAMES = {
    (Format.ANTHROPIC, Hosted.YES): "tool_search_tool_bm25",
    (Format.ANTHROPIC, Hosted.BM25): "tool_search_tool_bm25",
    (Format.ANTHROPIC, Hosted.REGEX): "tool_search_tool_regex",
}
OPENAI_NAME = "tool_search"


def name_in(form: ListForm, own_name: str) -> str:
    """The name by which the model calls the search."""
    if form.format is Format.OPENAI:
        return OPENAI_NAME
    return HOSTED_NAMES.get((form.format, form.hosted), own_name)


def define(form: ListForm, own_name: str) -> dict[str, Any]:
    """The search tool's entry in a list of this form."""
    match form.format:
        case Format.ANTHROPIC if form.is_hosted:
            name = name_in(form, own_name)
            return {"type": f"{name}_20251119", "name": name}
        case Format.ANTHROPIC:
            return {"name": own_name, "description": DESCRIPTION, "input_schema": SCHEMA}
        case Format.OPENAI if form.is_hosted:
            return {"type": OPENAI_NAME}
        case Format.OPENAI:
            return {
                "type": OPENAI_NAME,
                "execution": "client",
                "description": DESCRIPTION,
                "parameters": SCHEMA,
            }
        case _:
            return {"name": own_name, "description": DESCRIPTION, "inputSchema": SCHEMA}


def count_chars(own_name: str) -> int:
    """What our search tool costs the model."""
    return measure_definition(own_name, DESCRIPTION, SCHEMA).chars
