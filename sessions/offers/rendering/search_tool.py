"""The search tool's definition in each format, and the providers' hosted ones."""

from collections.abc import Mapping
from typing import Any

from catalog.domain.limits import PATTERN_CHARS, QUERY_CHARS
from catalog.domain.policy import Policy
from catalog.domain.sizes import measure_definition
from sessions.offers.rendering.formats import Format, Hosted, ListForm

DESCRIPTION = (
    "Find and load tools that are not listed yet. Give words for what the tool should do, and the best"
    " matches can be called afterwards. `select:name,other_name` loads tools by name; `+word` demands that"
    " word in the tool's name; an empty query lists what there is."
)
_PROPERTIES: Mapping[str, Any] = {
    "query": {
        "type": "string",
        "maxLength": QUERY_CHARS,
        "description": "Words for what the tool should do.",
    },
    "pattern": {
        "type": "string",
        "maxLength": PATTERN_CHARS,
        "description": "In place of a query: a regular expression over names and descriptions.",
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
    """The name by which the model calls the search tool."""
    if form.format is Format.OPENAI:
        return OPENAI_NAME
    return HOSTED_NAMES.get((form.format, form.hosted), own_name)


def define(form: ListForm, policy: Policy) -> dict[str, Any]:
    """The search tool's entry in a list of this form."""
    own_name, schema = policy.search_tool_name, schema_for(policy)
    match form.format:
        case Format.ANTHROPIC if form.is_hosted:
            name = name_in(form, own_name)
            return {"type": f"{name}_20251119", "name": name}
        case Format.ANTHROPIC:
            return {"name": own_name, "description": DESCRIPTION, "input_schema": schema}
        case Format.OPENAI if form.is_hosted:
            return {"type": OPENAI_NAME}
        case Format.OPENAI:
            return {
                "type": OPENAI_NAME,
                "execution": "client",
                "description": DESCRIPTION,
                "parameters": schema,
            }
        case _:
            return {"name": own_name, "description": DESCRIPTION, "inputSchema": schema}


def schema_for(policy: Policy) -> dict[str, Any]:
    """A model may ask for at most as many results as the policy allows."""
    most = {"type": "integer", "minimum": 1, "maximum": policy.max_results}
    return {"type": "object", "properties": {**_PROPERTIES, "max_results": most}}


def count_search_tool_chars(policy: Policy) -> int:
    """The characters that our search tool costs."""
    return measure_definition(policy.search_tool_name, DESCRIPTION, schema_for(policy)).chars
