"""The gateway's search and its definitions by name. Neither loads anything."""

import json
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.utils import timezone

from catalog.domain.errors import InvalidInput
from catalog.domain.limits import (
    GATEWAY_CONTENT_BYTES,
    GATEWAY_DESCRIBED_NAMES,
    GATEWAY_SEARCH_TOKENS,
    QUERY_CHARS,
    RESULTS,
)
from catalog.domain.prompt import first_sentence
from catalog.domain.query import Keywords, Query, Select, name_forms
from catalog.domain.sizes import CHARS_PER_TOKEN, compact_json, count_message_bytes
from catalog.domain.values import is_storable
from sessions.domain import messages
from sessions.gateway.answers import JsonObject, answer_json
from sessions.gateway.callers import Caller
from sessions.gateway.clients import ClientSeen
from sessions.models import SearchEventOutcome
from sessions.offers.gateway_offer import GatewayOffer
from sessions.offers.tool_lists import ResolvedTools
from sessions.services import write_behind
from sessions.services.client_sessions import find_client_session
from sessions.services.events import PendingSearch
from sessions.services.loading import SearchCall, SearchResult, answer_search, parse_call

LONGEST_MISSING = 200  # characters of a name that no tool has
_quote = json.encoder.encode_basestring


def read_search(arguments: Mapping[str, Any]) -> SearchCall:
    """Fields that are not known are ignored: a model wrote this. Raises InvalidInput."""
    query, pattern = _read_text(arguments, "query"), _read_text(arguments, "pattern") or None
    if pattern is not None and not query:
        query = None  # many models fill in every field
    most = arguments.get("max_results")
    if most is not None and (type(most) is not int or not 1 <= most <= RESULTS):
        raise InvalidInput.at("max_results", f"must be a whole number from 1 to {RESULTS}")
    return SearchCall(query=query, pattern=pattern, max_results=most, load=False)


def search(caller: Caller, client: ClientSeen, arguments: Mapping[str, Any]) -> JsonObject:
    """The result, with the search recorded. Raises InvalidInput for what cannot be run."""
    return answer_json(search_text(caller, client, arguments))


def search_text(caller: Caller, client: ClientSeen, arguments: Mapping[str, Any]) -> str:
    """What is found, as JSON; the search is recorded. Raises InvalidInput for what cannot be run."""
    started = time.perf_counter()
    call, offer = read_search(arguments), caller.offer
    query = _use_qualified_names(offer, parse_call(call))
    resolved = ResolvedTools(offer.offer)
    result = answer_search(resolved, query, call, catalog_version=caller.catalog_version)
    text = _write(offer, result)
    _record(caller, client, result, took_seconds=time.perf_counter() - started)
    return text


def describe(caller: Caller, arguments: Mapping[str, Any]) -> JsonObject:
    """As many definitions as a message holds, at least one; `more` names the others.

    Raises InvalidInput unless `names` is a list of names.
    """
    names = arguments.get("names")
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise InvalidInput.at("names", "must be a list of tool names")
    if len(names) > GATEWAY_DESCRIBED_NAMES:
        raise InvalidInput.at("names", f"takes at most {GATEWAY_DESCRIBED_NAMES} names")
    by_name = caller.offer.by_name
    known = {name: by_name[name] for name in names if name in by_name}
    missing = [name[:LONGEST_MISSING] for name in dict.fromkeys(names) if name not in known]
    tools: list[JsonObject] = []
    more: list[str] = []
    # Text and structured content hold them both.
    left_bytes = GATEWAY_CONTENT_BYTES // 3
    for tool in dict.fromkeys(known.values()):
        definition = caller.offer.describe(tool)
        left_bytes -= count_message_bytes(definition)
        if left_bytes < 0 and tools:
            more.append(tool.name)
        else:
            tools.append(definition)
    return answer_json(compact_json({"tools": tools, "missing": missing, "more": more}))


def _read_text(arguments: Mapping[str, Any], name: str) -> str | None:
    value = arguments.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidInput.at(name, "must be text")
    if value is not None and not is_storable(value):
        raise InvalidInput.at(name, "must have no NUL and no half of a character")
    return value


def _use_qualified_names(offer: GatewayOffer, query: Query) -> Query:
    """Tools go by other names here than in the index."""
    if isinstance(query, Select):
        return Select(tuple(_qualify(offer, name) for name in query.names))
    if isinstance(query, Keywords):
        for name in name_forms(query.text):
            if name in offer.by_name:
                return Keywords(_qualify(offer, name))
    return query


def _qualify(offer: GatewayOffer, name: str) -> str:
    known = offer.by_name.get(name)
    return name if known is None else known.offered.name


def _write(offer: GatewayOffer, result: SearchResult) -> str:
    names = [offer.name_of[match.found.tool.name] for match in result.matches]
    matches, more = _write_matches(offer, result)
    fallback, is_cut = _write_fallback(offer, result)
    rest = {
        "more": more,
        "missing": list(result.missing),
        "unmatched_terms": list(result.unmatched_terms),
        "truncated": result.is_truncated or is_cut,
        "message": _say(result, names, shown=len(fallback), is_cut=result.is_truncated or is_cut),
    }
    return (
        f'{{"outcome":"{result.outcome}","matches":[{",".join(matches)}]'
        f',"fallback":[{",".join(fallback)}],{compact_json(rest)[1:]}'
    )


def _write_matches(offer: GatewayOffer, result: SearchResult) -> tuple[list[str], list[str]]:
    """As many definitions as fit, best first, and the names of the others."""
    written: list[str] = []
    more: list[str] = []
    left = GATEWAY_SEARCH_TOKENS * CHARS_PER_TOKEN
    for match in result.matches:
        text, name = match.found.tool.text, offer.name_of[match.found.tool.name]
        described = f'"description":{_quote(text.description)},"inputSchema":{text.schema}'
        entry = f'{{"name":{_quote(name)},{described}}}'
        if len(entry) > left:
            more.append(name)
            continue
        left -= len(entry)
        written.append(entry)
    return written, more


def _write_fallback(offer: GatewayOffer, result: SearchResult) -> tuple[list[str], bool]:
    """What may be found, each with a sentence, as far as it fits."""
    written: list[str] = []
    left = GATEWAY_SEARCH_TOKENS * CHARS_PER_TOKEN
    for tool in result.fallback:
        sentence = first_sentence(tool.text.description)
        entry = f'{{"name":{_quote(offer.name_of[tool.name])},"description":{_quote(sentence)}}}'
        left -= len(entry)
        if left < 0:
            return written, True
        written.append(entry)
    return written, False


def _say(result: SearchResult, names: Sequence[str], *, shown: int, is_cut: bool) -> str:
    match result.outcome:
        case SearchEventOutcome.MATCHED:
            say_found = messages.say_matched_by_meaning if result.is_by_meaning else messages.say_matched
            return say_found(names, ())
        case SearchEventOutcome.NO_MATCH:
            return messages.say_no_match(
                result.unmatched_terms, result.missing, fallback=shown, is_cut=is_cut, locked=result.locked
            )
        case SearchEventOutcome.LISTING:
            return messages.say_listing(fallback=shown, is_cut=is_cut, locked=result.locked)
        case _:
            return "Nothing has to be searched for: every tool is listed."


def _record(caller: Caller, client: ClientSeen, result: SearchResult, *, took_seconds: float) -> None:
    """As searches by REST are, under the session of this key and client."""
    session_id = find_client_session(key_id=caller.key_id, policy_id=caller.policy_id, client=client.name)
    if session_id is None:
        return
    hits = [(match.found.tool.name, round(match.found.hit.score, 4)) for match in result.matches]
    write_behind.enqueue_search(
        PendingSearch(
            session_id=session_id,
            at=timezone.now() - timedelta(seconds=took_seconds),
            turn=0,
            query=result.call.text[:QUERY_CHARS],
            form=result.form,
            outcome=result.outcome,
            hits=hits,
            tokens_loaded=0,
            took_us=round(took_seconds * 1_000_000),
        )
    )
