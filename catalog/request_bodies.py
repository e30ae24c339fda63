"""The base of all bodies that REST calls take, and the types of their values."""

from datetime import datetime
from enum import Enum
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Strict, StringConstraints, model_validator

Option = TypeVar("Option", bound=Enum)

# A database keeps no NUL character.
Text = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")]
# JSON has no enumerations: one of the texts stands for its member.
Choice = Annotated[Option, Strict(False)]


def _refuse_timestamp(value: object) -> object:
    """A number, as text too, would pass for seconds since 1970."""
    if isinstance(value, datetime):
        return value
    if not isinstance(value, str) or "-" not in value:
        raise ValueError("must be a date and time such as 2026-01-05T09:00:00Z")
    return value


Moment = Annotated[datetime, Strict(False), BeforeValidator(_refuse_timestamp)]


def example(value: object) -> ConfigDict:
    return ConfigDict(json_schema_extra={"example": value})  # type: ignore[dict-item]


class BodyIn(BaseModel):
    """A body whose every field is known and of its own type: no text for a number, no number for a truth.

    `read_only` are fields that only an answer has. They are ignored, so that an answer can be sent back.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    read_only: ClassVar[frozenset[str]] = frozenset()

    @model_validator(mode="before")
    @classmethod
    def _drop_read_only(cls, given: Any) -> Any:
        if not isinstance(given, dict) or cls.read_only.isdisjoint(given):
            return given
        return {name: value for name, value in given.items() if name not in cls.read_only}
