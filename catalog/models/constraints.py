"""Columns and constraints that several tables share."""

from enum import StrEnum

from django.db import models
from django.db.models import Q

Words = type[StrEnum] | type[models.TextChoices]


def labelled(words: type[StrEnum]) -> list[tuple[str, str]]:
    """Django choices of an enum of the domain."""
    return [(word.value, word.value.replace("_", " ").capitalize()) for word in words]


def one_of(field: str, words: Words, *, table: str) -> models.CheckConstraint:
    """A constraint: the column holds one of the values, also when written past Django's forms."""
    values = [word.value for word in words]
    return models.CheckConstraint(condition=Q(**{f"{field}__in": values}), name=f"{table}_{field}_is_known")


def within(field: str, low: float, high: float, *, table: str) -> models.CheckConstraint:
    """A constraint: the column is null or within the bounds, both included."""
    return models.CheckConstraint(
        condition=Q(**{field: None}) | Q(**{f"{field}__gte": low, f"{field}__lte": high}),
        name=f"{table}_{field}_is_in_range",
    )
