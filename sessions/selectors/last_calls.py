"""The last call of an agent, for the page that waits for it."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from catalog.models import ApiKey
from sessions.models import AgentSession, Call, CallOutcome, SearchEvent

SHOWN_IN_SECONDS = timedelta(minutes=1)
MCP_CALL = "POST /mcp"
# What a call is to a reader, by method and path as keys keep them.
_WORDS = (
    (re.compile(r"POST /sessions"), "began a session"),
    (re.compile(r"GET /(sessions|policies)/[^/]+/tools"), "read its tool list"),
    (re.compile(r"POST /sessions/[^/]+/search"), "searched"),
    (re.compile(r"POST /sessions/[^/]+/turns"), "ended a turn"),
    (re.compile(r"POST /mcp tools/list"), "listed its tools"),
    (re.compile(r"POST /mcp\b.*"), "reached the gateway"),
)


@dataclass(frozen=True, slots=True)
class LastCall:
    """`client` is how the program names itself, which may be nothing. `seconds_ago` is None for a call that
    is older than a minute, `query` is what a search asked.
    """

    at: datetime
    client: str
    words: str
    query: str
    seconds_ago: int | None
    is_through_gateway: bool


def read_last_call(key: ApiKey | None, *, now: datetime) -> LastCall | None:
    """The last call with this key, or with any. Uses are written once a minute, searches and calls of tools
    at once, so a later one of those counts.
    """
    used = key or ApiKey.objects.exclude(last_used_at=None).order_by("-last_used_at").first()
    if used is None or used.last_used_at is None:
        return None
    is_mcp = used.last_call.startswith(MCP_CALL)
    found = [_Happening(used.last_used_at, _describe(used.last_call), used.last_client, "", is_mcp)]
    if search := _read_last_search(used):
        found.append(_Happening(search.at, "searched", used.last_client, search.query))
    if call := Call.objects.filter(key=used).first():
        found.append(
            _Happening(call.at, _describe_tool_call(call), call.client or used.last_client, "", True)
        )
    last = max(found, key=lambda each: each.at)
    age = max(now - last.at, timedelta())
    seconds_ago = int(age.total_seconds()) if age < SHOWN_IN_SECONDS else None
    return LastCall(last.at, last.client, last.words, last.query, seconds_ago, last.is_through_gateway)


class _Happening(NamedTuple):
    at: datetime
    words: str
    client: str
    query: str = ""
    is_through_gateway: bool = False


def _read_last_search(key: ApiKey) -> SearchEvent | None:
    """Of its newest session: an index leads there, and an agent that is being connected has no other."""
    newest = AgentSession.objects.filter(key=key).order_by("-created_at", "-pk").first()
    return newest.searches.order_by("-at").first() if newest else None


def _describe(call: str) -> str:
    return next((words for pattern, words in _WORDS if pattern.fullmatch(call)), call or "called")


def _describe_tool_call(call: Call) -> str:
    outcome = "" if call.outcome == CallOutcome.OK else f": {call.get_outcome_display().lower()}"
    return f"called {call.tool}{outcome}"
