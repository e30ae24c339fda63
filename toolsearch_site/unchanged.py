"""Answers a poll that finds nothing new before Django makes a request of it.

"Anything new?" is most of what agents ask all day. A "304 Not Modified" that a view gave is kept with what it
came from; the same poll gets it again if the view's one read of the database, made anew, brings the same.
Whatever else is asked or found goes on to Django.
"""

import time
from collections.abc import Callable, Iterable
from http import HTTPStatus
from threading import Lock
from typing import Any, NamedTuple

from django.db import Error, connection

from catalog.callers import bearer_of
from sessions.api.polling import UNCHANGED, Unchanged, is_still
from sessions.domain import keys
from toolsearch_site import metrics, request_ids

Environ = dict[str, Any]
Headers = list[tuple[str, str]]
StartResponse = Callable[..., Any]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]
Asked = tuple[str | None, ...]

KEPT_ANSWERS = 10_000
# A poll of ours has some 200 characters. A caller may send a thousand times as many, which Django answers.
LONGEST_KEPT_CHARS = 1_000
STATUS_LINE = f"{HTTPStatus.NOT_MODIFIED.value} {HTTPStatus.NOT_MODIFIED.phrase}"


class _Kept(NamedTuple):
    """`tag` is what the caller had when it was told that nothing is new."""

    unchanged: Unchanged
    headers: Headers
    tag: str


class _Shelf:
    """The last such answer of each poller. What was kept longest goes first. A process answers on several
    threads.
    """

    def __init__(self) -> None:
        self._kept: dict[Asked, _Kept] = {}
        self._lock = Lock()
        self.find = self._kept.get

    def keep(self, asked: Asked, kept: _Kept) -> None:
        if sum(len(text) for text in (*asked, kept.tag) if text) > LONGEST_KEPT_CHARS:
            return
        with self._lock:
            while len(self._kept) >= KEPT_ANSWERS:
                del self._kept[next(iter(self._kept))]
            self._kept[asked] = kept

    def drop(self, asked: Asked) -> None:
        with self._lock:
            self._kept.pop(asked, None)


class UnchangedFirst:
    """Wraps the site's WSGI application."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._shelf = _Shelf()

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        tag = environ.get("HTTP_IF_NONE_MATCH")
        if tag is None or environ["REQUEST_METHOD"] != "GET":
            return self._application(environ, start_response)
        started = time.perf_counter()
        key_text = bearer_of(environ)
        asked = _read_asked(environ, key_text)
        kept = self._shelf.find(asked)
        if kept is None or kept.tag != tag or not _is_in_force(kept.unchanged, key_text):
            self._shelf.drop(asked)  # or the next such poll would be read twice again
            return self._application(environ, _keeping(self._shelf, asked, environ, start_response))
        start_response(STATUS_LINE, [*kept.headers, (request_ids.HEADER, request_ids.choose_id(environ))])
        metrics.count("poll", "GET", HTTPStatus.NOT_MODIFIED, seconds=time.perf_counter() - started)
        return []

    def is_repeated_poll(self, environ: Environ) -> bool:
        """Whether this very poll was told before that nothing is new: mostly one read answers it again."""
        kept = self._shelf.find(_read_asked(environ, bearer_of(environ)))
        return (
            kept is not None
            and kept.tag == environ.get("HTTP_IF_NONE_MATCH")
            and environ["REQUEST_METHOD"] == "GET"
        )


def _read_asked(environ: Environ, key_text: str) -> Asked:
    """All of a poll that its answer can depend on, but for its tag and the database. Of the key its public
    part.
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


def _is_in_force(unchanged: Unchanged, key_text: str) -> bool:
    """A database that is away is Django's to tell."""
    try:
        return is_still(unchanged, key_text=key_text)
    except Error:
        return False
    finally:
        connection.close_if_unusable_or_obsolete()


def _keeping(shelf: _Shelf, asked: Asked, environ: Environ, start_response: StartResponse) -> StartResponse:
    def start(status: str, headers: Headers, *more: Any) -> Any:
        unchanged = environ.get(UNCHANGED)
        if unchanged is not None:
            own = [one for one in headers if one[0] != request_ids.HEADER]
            shelf.keep(asked, _Kept(unchanged, own, environ["HTTP_IF_NONE_MATCH"]))
        return start_response(status, headers, *more)

    return start
