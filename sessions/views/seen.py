"""Pages that ask again and again say what they have seen; while that is all, the answer is empty."""

from django.http import HttpRequest

from catalog.views.pages import wants_part

HEADER = "X-Seen"
NOTHING_NEW = 204
STOP_ASKING = 286  # htmx's own


def has_seen(request: HttpRequest, stamp: str) -> bool:
    return wants_part(request) and request.headers.get(HEADER) == stamp
