"""Request and response bodies of policies."""

from datetime import datetime
from typing import Annotated, Any

from ninja import Field, Schema

from catalog.domain.limits import COUNT
from catalog.request_bodies import BodyIn, example


class PolicyOut(Schema):
    """Every field of the contract's sections 5.1 and 8; `version` grows with every save."""

    model_config = example(
        {"slug": "default", "version": 1, "fields": {"mode": "always", "threshold_unit": "chars"}}
    )

    slug: str
    version: int
    fields: dict[str, Any]


class PolicyListOut(Schema):
    model_config = example({"items": [], "next": None})

    items: list[PolicyOut]
    next: str | None


class VersionOut(Schema):
    number: int
    actor: str
    saved_at: datetime
    fields: dict[str, Any]


class VersionListOut(Schema):
    model_config = example({"items": [], "next": None})

    items: list[VersionOut]
    next: str | None


class RollBackIn(BodyIn):
    model_config = example({"version": 1})

    version: Annotated[int, Field(ge=1, le=COUNT)]
