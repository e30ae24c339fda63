"""Checks a call's arguments against the tool's stored schema before its server is asked.

The schema comes from a server and the arguments from a model, so the work is bounded: past the bound, and
where the schema is none, the server decides. Patterns and formats are left to the server too, since
JavaScript's are not Python's, and so is what may take time in the square of the input.
"""

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jsonschema import Draft7Validator, Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend
from referencing import Registry

from catalog.domain.errors import InvalidInput
from catalog.domain.limits import MESSAGE_LEVELS
from catalog.domain.problems import Problems
from catalog.upstream.wire_checks import inside
from sessions.offers.rendering.wire import ToolText

MOST_STEPS = 20_000
MOST_SECONDS = 0.5
MOST_PROBLEMS = 50
KEPT_VALIDATORS = 2_000
_LONGEST_SCHEMA_CHARS = 200_000
logger = logging.getLogger(__name__)
_UNCHECKED = frozenset(
    (
        *("pattern", "patternProperties", "propertyNames", "format", "$dynamicRef", "$recursiveRef"),
        *("unevaluatedProperties", "unevaluatedItems", "uniqueItems"),
    )
)


@dataclass(slots=True)
class _Work:
    """What one check has cost by now."""

    ends_at: float
    steps: int = 0


_work: ContextVar[_Work] = ContextVar("work")


class _TooMuchWork(Exception):
    """The schema asks for more work than one check may take."""


def read_arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    """Of `call_tool`: `arguments` or `arguments_json`. Raises InvalidInput for both, or no object.

    Blank text counts as not given: many models fill in every field.
    """
    arguments, text = given.get("arguments"), given.get("arguments_json")
    if isinstance(text, str) and not text.strip():
        text = None
    if arguments is not None and text is not None:
        raise InvalidInput.at("arguments", "give either arguments or arguments_json, not both")
    place = "arguments" if text is None else "arguments_json"
    if text is not None:
        arguments = _parse(text)
    if arguments is None:
        return {}
    if not isinstance(arguments, dict):
        raise InvalidInput.at(place, "must be an object")
    return arguments


def check_arguments(tool: ToolText, arguments: Mapping[str, Any]) -> None:
    """Raises InvalidInput with every wrong or missing field."""
    if len(tool.schema) > _LONGEST_SCHEMA_CHARS:
        return
    problems = Problems()
    _work.set(_Work(time.monotonic() + MOST_SECONDS))
    try:
        for error in _validator(tool.schema).iter_errors(arguments):
            for place, message in _explain(error):
                problems.add(place, message)
            if len(problems.found) >= MOST_PROBLEMS:
                break
    except Exception as error:  # too much work, or a schema that is none: whatever the library raises then
        logger.debug("the arguments of %s cannot be checked here: %s", tool.name, type(error).__name__)
        return
    problems.raise_if_any()


def _parse(text: object) -> object:
    if not isinstance(text, str):
        raise InvalidInput.at("arguments_json", "must be text")
    try:
        read = json.loads(text)
        json.dumps(read, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        raise InvalidInput.at("arguments_json", "holds text that is not valid Unicode") from None
    except (ValueError, RecursionError) as error:
        raise InvalidInput.at("arguments_json", f"is not JSON: {error}") from None
    if _is_deep(read):
        raise InvalidInput.at("arguments_json", f"is nested more than {MESSAGE_LEVELS} levels deep")
    return read


def _is_deep(value: object) -> bool:
    """Whether it is deeper than a message may be, whose parsers refuse it: no server's failure."""
    level = [value]
    for _ in range(MESSAGE_LEVELS):
        level = [inner for each in level for inner in inside(each) if isinstance(inner, dict | list)]
        if not level:
            return False
    return True


def _explain(error: ValidationError) -> Iterator[tuple[str, str]]:
    """The places of an error, in words. A missing field is named itself."""
    path = [str(step) for step in error.absolute_path]
    if error.validator == "required" and isinstance(error.instance, Mapping):
        for name in error.validator_value:
            if name not in error.instance and f"{name!r} is a required property" == error.message:
                yield ".".join(["arguments", *path, str(name)]), "is missing"
        return
    yield ".".join(["arguments", *path]), error.message[:300]


@lru_cache(maxsize=KEPT_VALIDATORS)
def _validator(schema: str) -> Any:
    read = json.loads(schema)
    kind = _OLDER if "draft-07" in str(read.get("$schema", "")) else _LATEST
    return kind(read, registry=_NOWHERE)


_NOWHERE: Registry[Any] = Registry()  # knows no other document, and asks nobody for one


def _bounded(check: Callable[..., Any]) -> Callable[..., Iterator[ValidationError]]:
    def counted(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        work = _work.get()
        work.steps += 1
        if work.steps > MOST_STEPS or time.monotonic() > work.ends_at:
            raise _TooMuchWork
        yield from check(validator, value, instance, schema) or ()

    return counted


def _check_additional(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """With patterns beside it nobody here can say what is additional."""
    if "patternProperties" not in schema:
        yield from _ADDITIONAL(validator, value, instance, schema) or ()


_ADDITIONAL = Draft202012Validator.VALIDATORS["additionalProperties"]


def _make_validator(base: Any) -> Any:
    checks = {
        name: _bounded(_check_additional if name == "additionalProperties" else check)
        for name, check in base.VALIDATORS.items()
        if name not in _UNCHECKED
    }
    ignored = dict.fromkeys((name for name in base.VALIDATORS if name in _UNCHECKED), _ignore)
    return extend(base, validators={**checks, **ignored})


def _ignore(*_: object) -> tuple[()]:
    return ()


_LATEST = _make_validator(Draft202012Validator)
_OLDER = _make_validator(Draft7Validator)
