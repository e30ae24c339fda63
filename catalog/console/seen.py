"""`X-Seen`: a polled page sends the stamp it shows, and gets an empty 204 while it is current."""

from django.http import HttpRequest

from catalog.console.pages import wants_part

HEADER = "X-Seen"
NOTHING_NEW = 204
STOP_ASKING = 286  # htmx's own: see its polling documentation


def has_seen(request: HttpRequest, stamp: str) -> bool:
    return wants_part(request) and request.headers.get(HEADER) == stamp
