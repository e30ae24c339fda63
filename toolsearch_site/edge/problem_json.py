"""Answers to programs that say what went wrong, in the form of RFC 9457."""

import json
from http import HTTPStatus
from typing import Any

from django.http import HttpResponse

PROBLEM_TYPE = "application/problem+json"


def problem(
    status: int, detail: str, *, title: str = "", errors: list[dict[str, str]] | None = None
) -> HttpResponse:
    headers = {"WWW-Authenticate": "Bearer"} if status == HTTPStatus.UNAUTHORIZED else {}
    text = write_problem(status, detail, title=title, errors=errors)
    return HttpResponse(text, status=status, content_type=PROBLEM_TYPE, headers=headers)


def write_problem(
    status: int, detail: str, *, title: str = "", errors: list[dict[str, str]] | None = None
) -> str:
    """The body alone, for a server that has no Django. The title is the status's own where none is given."""
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": title or HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
    }
    return json.dumps(body if errors is None else {**body, "errors": errors})
