"""Ends sign-ins that have been idle too long or have reached their maximum age."""

import logging
import time
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib.auth import logout
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.backends.base import UpdateError
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django_htmx.middleware import HtmxDetails

logger = logging.getLogger(__name__)

GetResponse = Callable[[HttpRequest], HttpResponse]

LONGEST_IDLE_SECONDS = 12 * 3600
# Noting every use would be a write for every page.
NOTE_EVERY_SECONDS = 300
BEGAN, USED = "sign_in_began", "sign_in_used"


def note_sign_in(request: HttpRequest, **_: Any) -> None:
    """Receiver of `user_logged_in`: stores when the sign-in began."""
    request.session[BEGAN] = request.session[USED] = int(time.time())


def expire_sign_ins(get_response: GetResponse) -> GetResponse:
    """Middleware, placed after authentication. A user who is signed out here is then asked to sign in."""

    def answer(request: HttpRequest) -> HttpResponse:
        if request.user.is_authenticated:
            _end_or_note(request)
        return get_response(request)

    return answer


def _end_or_note(request: HttpRequest) -> None:
    now, session = int(time.time()), request.session
    if BEGAN not in session:  # of a version that did not note it
        note_sign_in(request)
        _store(request)
    unused_seconds = now - session[USED]
    if now - session[BEGAN] > settings.SESSION_COOKIE_AGE or unused_seconds > LONGEST_IDLE_SECONDS:
        _end(request)
    elif unused_seconds > NOTE_EVERY_SECONDS and _is_somebody_there(request):
        session[USED] = now
        _store(request)


def _store(request: HttpRequest) -> None:
    """Here and not with the answer: a full disk would make an error of a page that only reads."""
    try:
        request.session.save()
    except UpdateError:  # signed out meanwhile: the answer deals with that
        return
    except DatabaseError as error:
        logger.warning("the use of a sign-in could not be noted: %s", error)
    request.session.modified = False


def _end(request: HttpRequest) -> None:
    """Also where that cannot be stored: then every request with the old cookie comes here again."""
    try:
        logout(request)
    except DatabaseError as error:
        logger.warning("a sign-in that has ended could not be removed: %s", error)
        request.user = AnonymousUser()
        request.session.modified = False


def _is_somebody_there(request: HttpRequest) -> bool:
    """Whether a person acted: an open page polls its parts by itself, which must not keep a sign-in alive."""
    return request.method != "GET" or not HtmxDetails(request)
