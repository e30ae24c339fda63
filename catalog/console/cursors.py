"""Cursors: URL-safe texts that mark where the next page of a list begins."""

import base64
import json

from catalog.domain.errors import InvalidInput


def write_cursor(*values: str) -> str:
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")


def read_cursor(cursor: str, *, parts: int) -> list[str]:
    """Raises InvalidInput for a text that is not a cursor of ours."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        values = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, RecursionError):
        values = None
    if isinstance(values, list) and len(values) == parts and all(_is_plain(value) for value in values):
        return values
    raise InvalidInput.at("query.cursor", "is no cursor of this list")


def _is_plain(value: object) -> bool:
    return isinstance(value, str) and "\0" not in value and value.isprintable()
