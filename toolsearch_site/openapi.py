"""What every operation has in common in the OpenAPI document: the problems it may answer with."""

from http import HTTPStatus
from typing import Any

PROBLEM: dict[str, Any] = {
    "type": "object",
    "title": "Problem",
    "description": "RFC 9457. `errors` tells each mistake of a 422 and its place.",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["place", "message"],
                "properties": {"place": {"type": "string"}, "message": {"type": "string"}},
            },
        },
    },
    "example": {
        "type": "about:blank",
        "title": "Invalid input",
        "status": 422,
        "detail": "The request cannot be understood.",
        "errors": [{"place": "body.max_results", "message": "Input should be less than or equal to 50"}],
    },
}
WITH_KEY = (401, 403, 404, 409, 413, 422, 429, 503)


def add_problems(document: Any) -> Any:
    """Name the problems of every operation that asks for a key."""
    document["components"].setdefault("schemas", {})["Problem"] = PROBLEM
    for operations in document["paths"].values():
        for operation in operations.values():
            if operation.get("security"):
                for status in WITH_KEY:
                    operation["responses"].setdefault(status, _describe(status))
    return document


def _describe(status: int) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Problem"}
    described: dict[str, Any] = {
        "description": HTTPStatus(status).phrase,
        "content": {"application/problem+json": {"schema": schema}},
    }
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        described["headers"] = {"Retry-After": {"schema": {"type": "integer"}}}
    return described
