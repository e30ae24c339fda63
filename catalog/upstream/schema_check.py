"""Validates JSON Schemas with readable messages, fast enough for ten thousand of them."""

import hashlib
import json
import re
from functools import cache
from typing import Any

from jsonschema import (
    Draft3Validator,
    Draft4Validator,
    Draft6Validator,
    Draft7Validator,
    Draft201909Validator,
    Draft202012Validator,
)
from jsonschema.exceptions import best_match
from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

LATEST = "json-schema.org/draft/2020-12/schema"
_VOCABULARIES = (
    "core",
    "applicator",
    "unevaluated",
    "validation",
    "meta-data",
    "format-annotation",
    "content",
)
_OLDER = {
    "json-schema.org/draft-03/schema": Draft3Validator,
    "json-schema.org/draft-04/schema": Draft4Validator,
    "json-schema.org/draft-06/schema": Draft6Validator,
    "json-schema.org/draft-07/schema": Draft7Validator,
    "json-schema.org/draft/2019-09/schema": Draft201909Validator,
}
_REMEMBERED = 50_000

# Digests of schemas found valid: a refresh that finds nothing new checks nothing again.
_valid: set[bytes] = set()


def schema_problem(schema: dict[str, Any]) -> str | None:
    """Why a schema is invalid; None when it is valid in the draft it names, by default 2020-12."""
    digest = hashlib.sha256(json.dumps(schema, sort_keys=True).encode()).digest()
    if digest in _valid:
        return None
    problem = _find_problem(schema)
    if problem is None:
        if len(_valid) >= _REMEMBERED:
            _valid.clear()
        _valid.add(digest)
    return problem


def _find_problem(schema: dict[str, Any]) -> str | None:
    draft = schema.get("$schema", LATEST)
    if not isinstance(draft, str):
        return "$schema is not text"
    checker = _checker(draft.removeprefix("https://").removeprefix("http://").rstrip("#"))
    if checker is None:
        return f"it names a draft of JSON Schema that is not known here: {draft[:120]}"
    try:
        # Formats are not checked: a pattern may be fine in JavaScript and unknown to Python.
        error = best_match(checker.iter_errors(schema))
    except RecursionError:
        return "it is nested too deeply"
    if error is None:
        return None
    place = "/".join(str(step) for step in error.absolute_path)
    return f"{place or 'the schema'}: {error.message[:200]}"


@cache
def _checker(draft: str) -> Any:
    if draft in (LATEST, "json-schema.org/schema"):
        return Draft202012Validator(_flat_metaschema())
    older = _OLDER.get(draft)
    return older(older.META_SCHEMA) if older else None


def _flat_metaschema() -> dict[str, Any]:
    """The 2020-12 metaschema without dynamic references, which make each check six times slower."""
    properties = dict(Draft202012Validator.META_SCHEMA["properties"])
    flat: dict[str, Any] = {"type": ["object", "boolean"], "properties": properties, "$defs": {}}
    for vocabulary in _VOCABULARIES:
        part = REGISTRY.contents(f"https://json-schema.org/draft/2020-12/meta/{vocabulary}")
        flat["properties"] |= part["properties"]
        flat["$defs"] |= part.get("$defs", {})
    text = json.dumps(flat).replace('"$dynamicRef": "#meta"', '"$ref": "#"')
    return dict(json.loads(re.sub(r'"meta/[a-z-]+#/', '"#/', text)))
