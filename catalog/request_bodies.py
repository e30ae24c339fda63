"""Base class and types of all REST request bodies."""

from datetime import datetime
from enum import Enum
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Strict, StringConstraints, model_validator

from catalog.domain.errors import InvalidInput
from catalog.domain.problems import Problems
from catalog.domain.values import name_type

Option = TypeVar("Option", bound=Enum)

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

    `read_only` are fields that only responses have. They are ignored, so that a response can be sent back.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    read_only: ClassVar[frozenset[str]] = frozenset()

    @model_validator(mode="before")
    @classmethod
    def _drop_read_only(cls, given: Any) -> Any:
        if not isinstance(given, dict) or cls.read_only.isdisjoint(given):
            return given
        return {name: value for name, value in given.items() if name not in cls.read_only}


class NothingIn(BodyIn):
    """For calls that need no body: it may be left out or be empty, and a field in it is refused."""

    model_config = example({})


NOTHING = NothingIn()


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
