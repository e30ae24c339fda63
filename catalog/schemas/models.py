"""Request and response bodies of models."""

from typing import Annotated, Any

from ninja import Field, Schema

from catalog.domain.limits import COUNT, MODEL_PRICE_DOLLARS
from catalog.models.model_support import Provider
from catalog.request_bodies import BodyIn, Choice, example
from catalog.schemas.servers import Name

Price = Annotated[
    float,
    Field(
        ge=0,
        le=MODEL_PRICE_DOLLARS,
        allow_inf_nan=False,
        description="US dollars per million tokens, to six decimals; null where it is not known.",
    ),
]


class ModelIn(BodyIn):
    model_config = example(
        {"name_pattern": "claude-opus-4-5*", "provider": "anthropic", "hosted_search": True}
    )

    answer_only = frozenset({"id", "prices_are_examples"})

    name_pattern: Name
    provider: Choice[Provider]
    hosted_search: bool = False
    context_window: Annotated[int, Field(ge=1, le=COUNT)] | None = None
    input_price: Price | None = None
    cached_input_price: Price | None = None


UNSETTABLE = frozenset({"context_window", "input_price", "cached_input_price"})


class ModelPatchIn(BodyIn):
    model_config = example({"context_window": 200000})

    answer_only = frozenset({"id", "prices_are_examples"})

    name_pattern: Name | None = None
    provider: Choice[Provider] | None = None
    hosted_search: bool | None = None
    context_window: Annotated[int, Field(ge=1, le=COUNT)] | None = None
    input_price: Price | None = None
    cached_input_price: Price | None = None

    def changes(self) -> dict[str, Any]:
        """Of the fields, only the window and the prices can be unset."""
        given = self.model_dump(include=self.model_fields_set)
        return {field: value for field, value in given.items() if value is not None or field in UNSETTABLE}


class ModelOut(Schema):
    model_config = example(
        {
            "id": 1,
            "name_pattern": "claude-opus-4-5*",
            "provider": "anthropic",
            "hosted_search": True,
            "context_window": 200000,
            "input_price": 5.0,
            "cached_input_price": 0.5,
            "prices_are_examples": False,
        }
    )

    id: int
    name_pattern: str
    provider: Provider
    hosted_search: bool
    context_window: int | None
    input_price: Price | None
    cached_input_price: Price | None
    prices_are_examples: bool = Field(description="The demo's prices, which nobody has set.")


class ModelListOut(Schema):
    model_config = example({"items": [], "next": None})

    items: list[ModelOut]
    next: str | None
