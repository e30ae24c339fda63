"""A search result as JSON, with the blocks that each provider's API takes as they are."""

import json
from collections.abc import Sequence
from typing import Any

from catalog.domain.prompt import first_sentence
from catalog.domain.sizes import compact_json
from sessions.domain import messages
from sessions.models import SearchEventOutcome
from sessions.offers.offer import OfferedTool
from sessions.services.loading import Match, SearchResult

# What `compact_json` makes of a text, without its detours.
_quote = json.encoder.encode_basestring


def describe_result(result: SearchResult) -> dict[str, Any]:
    """The search result of the contract."""
    described: dict[str, Any] = json.loads(write_result(result))
    return described


def write_result(result: SearchResult) -> str:
    """The same as JSON. Definitions are JSON already, and by far the longest part."""
    message, texts = say(result), [match.found.tool.text for match in result.matches]
    references = [{"type": "tool_reference", "tool_name": text.name} for text in texts]
    # An empty list of content blocks is refused by the API: words stand in for the missing references.
    blocks = references or [{"type": "text", "text": _in_words(message, result.fallback)}]
    lists = {
        "loaded": list(result.loaded),
        "missing": list(result.missing),
        "unmatched_terms": list(result.unmatched_terms),
    }
    after = {"truncated": result.is_truncated, "tool_references": references, "anthropic": blocks}
    call_id = "null" if result.call.call_id is None else _quote(result.call.call_id)
    output = f'"type":"tool_search_output","execution":"client","call_id":{call_id},"status":"completed"'
    return "".join(
        (
            f'{{"outcome":"{result.outcome}","query":{_quote(result.call.text)},"form":"{result.form}"',
            f',"matches":[{",".join(map(_write_match, result.matches))}]',
            f",{compact_json(lists)[1:-1]}",
            f',"fallback":[{",".join(tool.text.write("summary") for tool in result.fallback)}]',
            f",{compact_json(after)[1:-1]}",
            f',"openai":{{{output}',
            f',"tools":[{",".join(text.write("openai") for text in texts)}]}}',
            f',"message":{_quote(message)},"took_ms":{round(result.took_ms, 3)}}}',
        )
    )


def say(result: SearchResult) -> str:
    match result.outcome:
        case SearchEventOutcome.MATCHED:
            say_found = messages.say_matched_by_meaning if result.is_by_meaning else messages.say_matched
            return say_found([match.found.tool.name for match in result.matches], result.loaded)
        case SearchEventOutcome.NO_MATCH:
            return messages.say_no_match(
                result.unmatched_terms,
                result.missing,
                fallback=len(result.fallback),
                is_cut=result.is_truncated,
                locked=result.locked,
            )
        case SearchEventOutcome.LISTING:
            return messages.say_listing(
                fallback=len(result.fallback), is_cut=result.is_truncated, locked=result.locked
            )
        case _:
            return messages.say_inactive()


def _write_match(match: Match) -> str:
    text = match.found.tool.text
    loaded = "true" if match.is_already_loaded else "false"
    return (
        f'{{"name":{_quote(text.name)},"server":{_quote(text.server)},"tool":{_quote(text.tool)}'
        f',"title":{_quote(text.title)},"description":{_quote(text.description)}'
        f',"parameters":[{",".join(map(_quote, text.parameters))}],"inputSchema":{text.schema}'
        f',"score":{round(match.found.hit.score, 6)},"already_loaded":{loaded},"by":"{match.found.hit.by}"}}'
    )


def _in_words(message: str, fallback: Sequence[OfferedTool]) -> str:
    lines = [
        f"- {tool.name}: {first_sentence(tool.text.description)}".removesuffix(": ") for tool in fallback
    ]
    return "\n".join([message, *lines])
