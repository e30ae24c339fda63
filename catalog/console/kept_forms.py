"""Keeps what was typed into a form that was refused, for the page that the browser is sent back to."""

from collections.abc import Mapping

from django.http import HttpRequest

KEPT = "kept_forms"
LONGEST_CHARS = 10_000
KeptForm = dict[str, str | list[str]]
SAVED_FORM = "saved query"  # of the test console and of the page of saved queries


def keep_form(request: HttpRequest, name: str, values: Mapping[str, str | list[str]]) -> None:
    """For forms without secrets: the values wait in the session until they are shown."""
    if len(str(values)) <= LONGEST_CHARS:
        request.session[KEPT] = {name: dict(values)}


def take_form(request: HttpRequest, name: str) -> KeptForm | None:
    """What was typed, once; None where nothing waits."""
    kept = request.session.get(KEPT) or {}
    if name not in kept:
        return None
    del request.session[KEPT]
    found: KeptForm = kept[name]
    return found
