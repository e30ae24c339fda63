"""`ETag` and `If-Match` for edits (RFC 9110)."""

from django.http import HttpRequest, HttpResponse
from django.utils.http import parse_etags

from catalog.services.edits import Precondition


def precondition_of(request: HttpRequest) -> Precondition | None:
    """None without `If-Match`, and for `*`. A weak tag matches nothing."""
    header = request.headers.get("If-Match")
    if header is None or header.strip() == "*":
        return None
    strong = [tag for tag in parse_etags(header) if tag.startswith('"')]
    return Precondition(tuple(tag.strip('"') for tag in strong), is_strict=True)


def send_version(response: HttpResponse, version: str) -> None:
    response["ETag"] = f'"{version}"'
