"""Reads REST request bodies: strict JSON objects, and the base class and types of their fields."""

import json
import re
from datetime import datetime
from enum import Enum
from typing import Annotated, Any, ClassVar, NoReturn, TypeVar

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, UnreadablePostError
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Strict,
    StringConstraints,
    ValidationError,
    model_validator,
)

from catalog.domain.errors import FieldProblem, InvalidInput
from catalog.domain.problems import Problems
from catalog.domain.values import name_type

Option = TypeVar("Option", bound=Enum)
Body = TypeVar("Body", bound="BodyIn")

_ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
# A database keeps no NUL character.
Text = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")]
ShortText = Annotated[Text, StringConstraints(max_length=100)]
# JSON has no enumerations: one of the texts stands for its member.
Choice = Annotated[Option, Strict(False)]


# What a policy's answer has beside its fields, so that it can be sent back.
_POLICY_ANSWER_ONLY = ("version", "fields")


def _refuse_timestamp(value: object) -> object:
    """Refuses numbers, also as text, which pydantic would read as seconds since 1970."""
    if isinstance(value, datetime):
        return value
    if not isinstance(value, str) or "-" not in value:
        raise ValueError("must be a date and time such as 2026-01-05T09:00:00Z")
    return value


Moment = Annotated[datetime, Strict(False), BeforeValidator(_refuse_timestamp)]


def example(value: object) -> ConfigDict:
    return ConfigDict(json_schema_extra={"example": value})  # type: ignore[dict-item]


class BodyIn(BaseModel):
    """A strict body: every field is known and of its own type.

    `answer_only` are fields that only responses have. They are ignored, so that a response can be sent back.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    answer_only: ClassVar[frozenset[str]] = frozenset()

    @model_validator(mode="before")
    @classmethod
    def _drop_answer_only(cls, given: Any) -> Any:
        if not isinstance(given, dict) or cls.answer_only.isdisjoint(given):
            return given
        return {name: value for name, value in given.items() if name not in cls.answer_only}


class NothingIn(BodyIn):
    """For calls that need no body: it may be left out or be empty, and a field in it is refused."""

    model_config = example({})


NOTHING = NothingIn()


def parse_object(body: bytes) -> dict[str, Any]:
    """Refuses NaN, NUL characters (which no database stores), lone surrogates, and everything but an
    object.
    """
    parsed = json.loads(body, parse_constant=_refuse_constant)
    if not isinstance(parsed, dict):  # every operation takes one, and a list would pass for an empty one
        raise TypeError("the body must be an object")
    if b"\\u" in body:
        text = json.dumps(parsed, ensure_ascii=False)
        text.encode()
        if _ESCAPED_NUL.search(text):
            raise ValueError("a text has a NUL character")
    return parsed


def read_body(request: HttpRequest, form: type[Body]) -> Body:
    """A plain view's body, refused in the words that Ninja's operations have for theirs."""
    try:
        given = parse_object(request.body or b"{}")
    except (ValueError, TypeError, RecursionError, RequestDataTooBig, UnreadablePostError) as error:
        raise InvalidInput(
            [FieldProblem("body", str(error))], detail="The request's body cannot be read."
        ) from None
    try:
        return form.model_validate(given)
    except ValidationError as error:
        places = [(".".join(map(str, ("body", *item["loc"]))), item["msg"]) for item in error.errors()]
        raise InvalidInput(
            [FieldProblem(*place) for place in places], detail="The request cannot be understood."
        ) from None


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def read_policy_fields(body: dict[str, Any]) -> dict[str, Any]:
    """A policy's fields, given at the top level or, as a response has them, below `fields`."""
    shown = body.get("fields", {})
    if not isinstance(shown, dict):
        raise InvalidInput.at("fields", f"must be an object, not {name_type(shown)}")
    given = {name: value for name, value in body.items() if name not in _POLICY_ANSWER_ONLY}
    return join_fields(given, shown)


def join_fields(fields: dict[str, Any], others: dict[str, Any]) -> dict[str, Any]:
    """Raises InvalidInput for a field that is given twice, with two values."""
    problems = Problems()
    for name in fields.keys() & others.keys():
        if fields[name] != others[name]:
            problems.add(f"policy.{name}", "is given twice, with two values")
    problems.raise_if_any()
    return {**fields, **others}
