"""A search result as plain JSON values, with the blocks that each provider's API takes as they are."""

import json
from typing import Any

from catalog.domain.prompt import first_sentence
from sessions.domain import messages
from sessions.models import Outcome
from sessions.services.loading import Match, SearchResult


def describe_result(result: SearchResult) -> dict[str, Any]:
    """The search result of the contract."""
    message = say(result)
    names = [match.found.tool.name for match in result.matches]
    references = [{"type": "tool_reference", "tool_name": name} for name in names]
    fallback = [
        {"name": tool.name, "description": first_sentence(tool.text.description)} for tool in result.fallback
    ]
    return {
        "outcome": str(result.outcome),
        "query": result.call.text,
        "form": result.form,
        "matches": [_describe_match(match) for match in result.matches],
        "loaded": list(result.loaded),
        "missing": list(result.missing),
        "unmatched_terms": list(result.unmatched_terms),
        "fallback": fallback,
        "truncated": result.is_truncated,
        "tool_references": references,
        # An empty list of content blocks is refused by the API: words stand in for the missing references.
        "anthropic": references or [{"type": "text", "text": _in_words(message, fallback)}],
        "openai": {
            "type": "tool_search_output",
            "execution": "client",
            "call_id": result.call.call_id,
            "status": "completed",
            "tools": [json.loads(match.found.tool.text.write("openai")) for match in result.matches],
        },
        "message": message,
        "took_ms": round(result.took_ms, 3),
    }


def say(result: SearchResult) -> str:
    match result.outcome:
        case Outcome.MATCHED:
            return messages.say_matched([match.found.tool.name for match in result.matches], result.loaded)
        case Outcome.NO_MATCH:
            return messages.say_no_match(
                result.unmatched_terms,
                result.missing,
                fallback=len(result.fallback),
                is_cut=result.is_truncated,
                locked=result.locked,
            )
        case Outcome.LISTING:
            return messages.say_listing(
                fallback=len(result.fallback), is_cut=result.is_truncated, locked=result.locked
            )
        case _:
            return messages.say_inactive()


def _describe_match(match: Match) -> dict[str, Any]:
    text = match.found.tool.text
    return {
        "name": text.name,
        "server": text.server,
        "tool": text.tool,
        "title": text.title,
        "description": text.description,
        "parameters": list(text.parameters),
        "inputSchema": json.loads(text.schema),
        "score": round(match.found.hit.score, 6),
        "already_loaded": match.is_already_loaded,
    }


def _in_words(message: str, fallback: list[dict[str, str]]) -> str:
    lines = [f"- {tool['name']}: {tool['description']}".removesuffix(": ") for tool in fallback]
    return "\n".join([message, *lines])
