"""The table of models for its page."""

from catalog.domain.errors import NotFound
from catalog.domain.model_names import choose_pattern
from catalog.models import ModelSupport


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
