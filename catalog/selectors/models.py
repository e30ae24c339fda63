"""The table of models for its page, and the model whose prices other pages show."""

from collections.abc import Sequence
from dataclasses import dataclass

from catalog.domain.errors import NotFound
from catalog.domain.model_names import choose_pattern
from catalog.domain.prices import ModelPrices
from catalog.models import ModelSupport


@dataclass(frozen=True, slots=True)
class PriceChoice:
    """The models whose price is known, and the chosen one's prices; None where there is none."""

    models: Sequence[ModelSupport]
    chosen: ModelSupport | None

    @property
    def prices(self) -> ModelPrices | None:
        row = self.chosen
        if row is None or row.input_price is None:
            return None
        return ModelPrices(
            model=row.name_pattern,
            fresh=row.input_price,
            cached=row.cached_input_price,
            are_examples=row.prices_are_examples,
        )


def models_for_table() -> list[ModelSupport]:
    return list(ModelSupport.objects.all())


def find_model(model_id: int) -> ModelSupport:
    row = ModelSupport.objects.filter(pk=model_id).first()
    if row is None:
        raise NotFound("There is no such row in the table of models.")
    return row


def row_that_counts(name: str, rows: list[ModelSupport]) -> ModelSupport | None:
    """The row that applies to a model of this name; None where no pattern matches."""
    chosen = choose_pattern(name, (row.name_pattern for row in rows)) if name else None
    return next((row for row in rows if row.name_pattern == chosen), None)


def choose_prices(wanted: str) -> PriceChoice:
    """The row of this id, else the first one, those that somebody has set before the demo's examples."""
    rows = list(
        ModelSupport.objects.exclude(input_price=None).order_by("prices_are_examples", "name_pattern")
    )
    chosen = next((row for row in rows if str(row.pk) == wanted), rows[0] if rows else None)
    return PriceChoice(rows, chosen)
