"""Adds to the OpenAPI document what all operations share: problem responses and `If-Match`."""

from http import HTTPStatus
from typing import Any

PROBLEM: dict[str, Any] = {
    "type": "object",
    "title": "Problem",
    "description": "RFC 9457. `errors` tells each mistake of a 422, `changed` what a 412 is about.",
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
        "changed": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["field", "by", "at"],
                "properties": {
                    "field": {"type": "string"},
                    "by": {"type": ["string", "null"]},
                    "at": {"type": ["string", "null"], "format": "date-time"},
                    "value": {"description": "The present one; left out where it is secret."},
                },
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
WITH_KEY = (401, 403, 404, 409, 411, 413, 422, 429, 503)


# Edits that can be bound to what was read, by the `ETag` that a GET gives.
CONDITIONAL = frozenset(
    {"change_server", "change_tool", "change_policy", "roll_back_policy", "change_model", "patch_model"}
)
IF_MATCH: dict[str, Any] = {
    "in": "header",
    "name": "If-Match",
    "required": False,
    "description": "The `ETag` of what was read: where that has changed since, the answer is a 412.",
    "schema": {"type": "string"},
}


def add_problems(document: Any) -> Any:
    """Add the problem responses of operations that need a key, and `If-Match` to edits."""
    document["components"].setdefault("schemas", {})["Problem"] = PROBLEM
    for operations in document["paths"].values():
        for operation in operations.values():
            if operation.get("security"):
                for status in WITH_KEY:
                    operation["responses"].setdefault(status, _describe(status))
            if operation["operationId"] in CONDITIONAL:
                operation.setdefault("parameters", []).append(IF_MATCH)
                operation["responses"].setdefault(412, _describe(412))
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
