"""Responses reach the web server whole and closed."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from django.core.signals import request_finished
from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.test import RequestFactory

from toolsearch_site import wsgi
from toolsearch_site.edge.buffered_response import buffer_responses


class Closing(HttpResponse):
    """Tells when it was closed."""

    was_closed = False

    def close(self) -> None:
        self.was_closed = True
        super().close()


@pytest.fixture(autouse=True)
def nobody_finishes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a request gives its connection back, which would end a test's transaction."""
    monkeypatch.setattr(request_finished, "send", lambda **_: [])


def ask(response: HttpResponseBase) -> Iterable[bytes]:
    def site(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response("200 OK", [])
        return response

    return buffer_responses(site)(RequestFactory().get("/").environ, lambda *_: None)


def test_answer_is_one_piece_and_closed() -> None:
    response = Closing(b"a list of tools")
    assert ask(response) == [b"a list of tools"]
    assert response.was_closed


def test_what_streams_is_made_whole_before_anybody_reads_it() -> None:
    response = StreamingHttpResponse(iter([b"a", b"b"]))
    assert ask(response) == [b"ab"]
    assert response.closed


def test_answer_that_fails_at_its_end_is_closed() -> None:
    class Failing(Closing):
        @property
        def content(self) -> bytes:
            raise RuntimeError("broken")

        @content.setter
        def content(self, value: object) -> None:
            pass

    response = Failing()
    with pytest.raises(RuntimeError):
        ask(response)
    assert response.was_closed


@pytest.mark.django_db
def test_is_what_the_web_server_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = wsgi.application(RequestFactory().get("/healthz").environ, lambda *_: None)
    assert answer == [b"ok\n"]
