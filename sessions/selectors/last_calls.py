"""The last call of an agent, for the page that waits for it."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from catalog.models import ApiKey
from sessions.models import AgentSession, SearchEvent

SHOWN_IN_SECONDS = timedelta(minutes=1)
# What a call is to a reader, by method and path as keys keep them.
_WORDS = (
    (re.compile(r"POST /sessions"), "began a session"),
    (re.compile(r"GET /(sessions|policies)/[^/]+/tools"), "read its tool list"),
    (re.compile(r"POST /sessions/[^/]+/search"), "searched"),
    (re.compile(r"POST /sessions/[^/]+/turns"), "ended a turn"),
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


def read_last_call(key: ApiKey | None, *, now: datetime) -> LastCall | None:
    """The last call with this key, or with any. Uses are written once a minute and searches at once, so a
    later search counts.
    """
    used = key or ApiKey.objects.exclude(last_used_at=None).order_by("-last_used_at").first()
    if used is None or used.last_used_at is None:
        return None
    at, words, query = used.last_used_at, _describe(used.last_call), ""
    search = _read_last_search(used)
    if search is not None and search.at > at:
        at, words, query = search.at, "searched", search.query
    age = max(now - at, timedelta())
    seconds_ago = int(age.total_seconds()) if age < SHOWN_IN_SECONDS else None
    return LastCall(at, used.last_client, words, query, seconds_ago)


def _read_last_search(key: ApiKey) -> SearchEvent | None:
    """Of its newest session: an index leads there, and an agent that is being connected has no other."""
    newest = AgentSession.objects.filter(key=key).order_by("-created_at", "-pk").first()
    return newest.searches.order_by("-at").first() if newest else None


def _describe(call: str) -> str:
    return next((words for pattern, words in _WORDS if pattern.fullmatch(call)), call or "called")
