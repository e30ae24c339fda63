"""Serves repeated 304s ahead of Django.

Most requests are polls without news. A "304 Not Modified" that a view gave is cached with the versions it was
based on; the same poll gets it again if one read of the database gives the same versions. All other requests
go on to Django.
"""

import time
from collections.abc import Callable, Iterable
from http import HTTPStatus
from threading import Lock
from typing import Any, NamedTuple

from django.db import Error, connection

from catalog.access.callers import bearer_of
from catalog.domain import keys
from sessions.api.polling import NOT_MODIFIED_BASIS, NotModifiedBasis, is_still_valid
from toolsearch_site.edge import request_ids
from toolsearch_site.monitoring import metrics

Environ = dict[str, Any]
Headers = list[tuple[str, str]]
StartResponse = Callable[..., Any]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]
PollIdentity = tuple[str | None, ...]

KEPT_ANSWERS = 10_000
# A poll of ours has some 200 characters. A caller may send a thousand times as many, which Django answers.
LONGEST_KEPT_CHARS = 1_000
STATUS_LINE = f"{HTTPStatus.NOT_MODIFIED.value} {HTTPStatus.NOT_MODIFIED.phrase}"


class _Kept(NamedTuple):
    """`tag` is the `If-None-Match` that was answered with 304."""

    basis: NotModifiedBasis
    headers: Headers
    tag: str


class NotModifiedCache:
    """The last 304 of each poller; the oldest entry is evicted first. Thread-safe."""

    def __init__(self) -> None:
        self._kept: dict[PollIdentity, _Kept] = {}
        self._lock = Lock()
        self.find = self._kept.get

    def keep(self, identity: PollIdentity, kept: _Kept) -> None:
        if sum(len(text) for text in (*identity, kept.tag) if text) > LONGEST_KEPT_CHARS:
            return
        with self._lock:
            while len(self._kept) >= KEPT_ANSWERS:
                del self._kept[next(iter(self._kept))]
            self._kept[identity] = kept

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()

    def drop(self, identity: PollIdentity) -> None:
        with self._lock:
            self._kept.pop(identity, None)


class NotModified:
    """Wraps the site's WSGI application."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._cache = NotModifiedCache()

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        tag = environ.get("HTTP_IF_NONE_MATCH")
        if tag is None or environ["REQUEST_METHOD"] != "GET":
            return self._application(environ, start_response)
        started = time.perf_counter()
        key_text = bearer_of(environ)
        identity = _identify_poll(environ, key_text)
        kept = self._cache.find(identity)
        if kept is None or kept.tag != tag or not _is_in_force(kept.basis, key_text, environ):
            self._cache.drop(identity)  # or the next such poll would be read twice again
            return self._application(environ, _keeping(self._cache, identity, environ, start_response))
        start_response(STATUS_LINE, [*kept.headers, (request_ids.HEADER, request_ids.choose_id(environ))])
        metrics.count_response("poll", "GET", HTTPStatus.NOT_MODIFIED, seconds=time.perf_counter() - started)
        return []

    def forget(self) -> None:
        self._cache.clear()

    def is_repeated_poll(self, environ: Environ) -> bool:
        """Whether this poll was answered with 304 before, so that one read will probably answer it again."""
        kept = self._cache.find(_identify_poll(environ, bearer_of(environ)))
        return (
            kept is not None
            and kept.tag == environ.get("HTTP_IF_NONE_MATCH")
            and environ["REQUEST_METHOD"] == "GET"
        )


def _identify_poll(environ: Environ, key_text: str) -> PollIdentity:
    """Everything in a poll that its answer depends on, except its tag and the database. Of the key, its
    public prefix.
    """
    find = environ.get
    return (
        find("PATH_INFO"),
        find("QUERY_STRING"),
        keys.read_prefix(key_text),
        find("wsgi.url_scheme"),
        find("HTTP_X_FORWARDED_PROTO"),
        find("HTTP_HOST"),  # which may be none of ours
        find("CONTENT_TYPE"),  # whose charset Django reads the query string with
    )


def _is_in_force(basis: NotModifiedBasis, key_text: str, environ: Environ) -> bool:
    """False while the database is away: Django answers that."""
    try:
        return is_still_valid(basis, key_text=key_text, environ=environ)
    except Error:
        return False
    finally:
        connection.close_if_unusable_or_obsolete()


def _keeping(
    cache: NotModifiedCache, identity: PollIdentity, environ: Environ, start_response: StartResponse
) -> StartResponse:
    def start(status: str, headers: Headers, *more: Any) -> Any:
        basis = environ.get(NOT_MODIFIED_BASIS)
        if basis is not None:
            own = [one for one in headers if one[0] != request_ids.HEADER]
            cache.keep(identity, _Kept(basis, own, environ["HTTP_IF_NONE_MATCH"]))
        return start_response(status, headers, *more)

    return start
