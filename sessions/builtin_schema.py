"""The REST schema of an agent's own tools."""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from catalog.domain.sizes import compact_json
from catalog.request_bodies import Text
from sessions.schema_types import Name

MOST_LEVELS = 200


def _is_deeper(value: object, *, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    inside = value.values() if isinstance(value, dict) else value
    return not levels or any(_is_deeper(one, levels=levels - 1) for one in inside)


class BuiltinIn(BaseModel):  # Ninja's own class would drop the fields that are not named here
    """A tool of the agent's own, in MCP's form. It loads unless `shouldDefer` or the policy says else."""

    model_config = ConfigDict(
        extra="allow",
        strict=True,
        json_schema_extra={
            "example": {
                "name": "read_file",
                "description": "Read a file of the workspace.",
                "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
            }
        },
    )

    name: Name
    title: Text | None = None
    description: Text | None = None
    inputSchema: dict[str, Any] | None = None  # noqa: N815  MCP's name
    should_defer: bool | None = Field(None, alias="shouldDefer")
    meta: dict[str, Any] | None = Field(None, alias="_meta")

    @model_validator(mode="after")
    def _must_be_json(self) -> Self:
        """Refuses what other JSON readers refuse; a number too large for a float was parsed as infinity."""
        if _is_deeper({**self.__dict__, **(self.model_extra or {})}, levels=MOST_LEVELS):
            raise ValueError(f"is nested deeper than {MOST_LEVELS} levels")
        compact_json(self.to_definition())
        return self

    def to_definition(self) -> dict[str, Any]:
        return self.model_dump(by_alias=True, exclude_unset=True, exclude_none=True)
