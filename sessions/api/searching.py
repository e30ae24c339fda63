"""The search as a plain view, because agents wait for it: a key's check and its session are one read."""

import uuid

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from catalog.access import key_uses
from catalog.access.callers import read_bearer, refuse_large_body, refuse_unmeasured_body
from catalog.domain.errors import NotFound
from catalog.request_bodies import read_body
from sessions.api.polling import admit
from sessions.offers.plain_sessions import OwnSession, find_own_session
from sessions.schemas import SearchIn
from sessions.services import write_behind
from sessions.services.loading import SearchCall, search_as_read
from sessions.services.search_results import write_result


def search_session(request: HttpRequest, session_id: uuid.UUID) -> HttpResponse:
    def find(prefix: str) -> OwnSession | None:
        return find_own_session(prefix, session_id, now=timezone.now())

    found = admit(read_bearer(request), find)
    key_uses.enqueue(found.key_id, request.META)
    refuse_unmeasured_body(request)
    refuse_large_body(request)
    asked = read_body(request, SearchIn)
    if found.reading is None:
        raise NotFound("There is no such session.")
    write_behind.enqueue_seen(session_id)
    call = SearchCall(
        query=asked.query,
        pattern=asked.pattern,
        max_results=asked.max_results,
        load=asked.load,
        call_id=asked.call_id,
    )
    text = write_result(search_as_read(found.reading, call=call))
    return HttpResponse(text.encode("utf-8", "replace"), content_type="application/json")
