"""Ends a sign-in that nobody uses any more, and one that has lasted long enough."""

import time
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib.auth import logout
from django.http import HttpRequest, HttpResponse
from django_htmx.middleware import HtmxDetails

Answer = Callable[[HttpRequest], HttpResponse]

LONGEST_IDLE_SECONDS = 12 * 3600
# Noting every use would be a write for every page.
NOTE_EVERY_SECONDS = 300
BEGAN, USED = "sign_in_began", "sign_in_used"


def begin(request: HttpRequest, **_: Any) -> None:
    """What `user_logged_in` calls."""
    request.session[BEGAN] = request.session[USED] = int(time.time())


def sign_in_ends(get_response: Answer) -> Answer:
    """Middleware, after the one that knows the user. Whoever is signed out is then asked to sign in."""

    def answer(request: HttpRequest) -> HttpResponse:
        if request.user.is_authenticated:
            _end_or_note(request)
        return get_response(request)

    return answer


def _end_or_note(request: HttpRequest) -> None:
    now, session = int(time.time()), request.session
    if BEGAN not in session:  # of a version that did not note it
        begin(request)
    unused_seconds = now - session[USED]
    if now - session[BEGAN] > settings.SESSION_COOKIE_AGE or unused_seconds > LONGEST_IDLE_SECONDS:
        logout(request)
    elif unused_seconds > NOTE_EVERY_SECONDS and _is_somebody_there(request):
        session[USED] = now


def _is_somebody_there(request: HttpRequest) -> bool:
    """A page that is left open asks for its parts by itself, all night."""
    return request.method != "GET" or not HtmxDetails(request)
