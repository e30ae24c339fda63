"""Adds, changes and deletes rows of the table of models."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db import IntegrityError, transaction

from catalog.access import actors
from catalog.access.roles import Role
from catalog.domain.errors import Conflict
from catalog.domain.limits import COUNT
from catalog.domain.prices import read_price
from catalog.domain.problems import Problems
from catalog.domain.values import is_storable
from catalog.models import Change, ModelSupport
from catalog.models.changes import Action, Subject
from catalog.models.model_support import Provider
from catalog.selectors.models import find_model
from catalog.services import changes, edits

MAX_PATTERN_CHARS = 100

Price = Decimal | float | None


@dataclass(frozen=True, slots=True)
class SavedModel:
    """The row as it is now. `change` is the record of what was changed, None where it was so already."""

    row: ModelSupport
    change: Change | None


@transaction.atomic
def save_model(
    *,
    name_pattern: str,
    provider: Provider,
    hosted_search: bool,
    context_window: int | None,
    actor: actors.Actor,
    input_price: Price = None,
    cached_input_price: Price = None,
    prices_are_examples: bool | None = None,
    model_id: int | None = None,
    if_unchanged: edits.Precondition | None = None,
) -> SavedModel:
    """Add a row, or change the one named. Raises Conflict where another row has the pattern, and OutdatedEdit
    where the precondition does not hold.

    Prices are in US dollars per million tokens. Unless it is said, they stay examples until one is changed.
    """
    actors.require(actor, Role.ADMIN)
    name_pattern = name_pattern.strip()
    prices = _check(name_pattern, context_window, input_price, cached_input_price)
    row = ModelSupport() if model_id is None else _hold(model_id)
    before = {} if model_id is None else describe_model(row)
    settings = {} if model_id is None else settings_of(row)
    row.name_pattern, row.provider = name_pattern, provider
    row.hosted_search, row.context_window = hosted_search, context_window
    if prices_are_examples is None:
        prices_are_examples = row.prices_are_examples and prices == (row.input_price, row.cached_input_price)
    row.input_price, row.cached_input_price = prices
    row.prices_are_examples = prices_are_examples
    if before:
        name = str(settings["name_pattern"])
        present = edits.EditedRow(Subject.MODEL, name, present=settings, shown=settings)
        edits.require_current(present, if_unchanged, wanted=settings_of(row))
    if describe_model(row) == before:
        return SavedModel(row, None)
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError:
        raise Conflict(f"there is a row for {name_pattern} already") from None
    change = changes.record_change(
        actor=actor,
        subject=Subject.MODEL,
        name=row.name_pattern,
        action=Action.CHANGED if before else Action.CREATED,
        before=before,
        after=describe_model(row),
    )
    return SavedModel(row, change)


@transaction.atomic
def delete_model(*, model_id: int, actor: actors.Actor) -> Change:
    actors.require(actor, Role.ADMIN)
    row = _hold(model_id)
    before = describe_model(row)
    row.delete()
    return changes.record_change(
        actor=actor, subject=Subject.MODEL, name=row.name_pattern, action=Action.DELETED, before=before
    )


def restore_model(*, change: Change, actor: actors.Actor) -> None:
    """Undo a change: an added row is deleted, a deleted one comes back, an edited one gets its former values.

    Raises Conflict where the row has changed since.
    """
    if change.action == Action.DELETED:
        _save_described(change.before, actor)
        return
    row = ModelSupport.objects.filter(name_pattern=change.name).first()
    if row is None:
        raise Conflict(f"there is no row for {change.name} any more")
    present = describe_model(row)
    differing = [field for field, value in change.after.items() if present.get(field) != value]
    if differing:
        later = changes.later_changes(change, differing)
        raise Conflict(f"the row for {change.name} has changed since: {later}")
    if change.action == Action.CREATED:
        delete_model(model_id=row.pk, actor=actor)
    else:
        _save_described({**present, **change.before}, actor, model_id=row.pk)


def version_of(row: ModelSupport) -> str:
    """The version of the row's settings, for the precondition of an edit."""
    return edits.encode_version(settings_of(row))


def change_model(
    *,
    model_id: int,
    changed: Mapping[str, Any],
    actor: actors.Actor,
    if_unchanged: edits.Precondition | None = None,
) -> SavedModel:
    """Change the fields given and leave the rest."""
    with transaction.atomic():
        fields = {**settings_of(_hold(model_id)), **changed}
        return _save_described(fields, actor, model_id=model_id, if_unchanged=if_unchanged)


def settings_of(row: ModelSupport) -> dict[str, object]:
    """The fields that are edited."""
    return {
        "name_pattern": row.name_pattern,
        "provider": str(row.provider),
        "hosted_search": row.hosted_search,
        "context_window": row.context_window,
        "input_price": _plain(row.input_price),
        "cached_input_price": _plain(row.cached_input_price),
    }


def describe_model(row: ModelSupport) -> dict[str, object]:
    """The row's fields for the change record."""
    return {**settings_of(row), "prices_are_examples": row.prices_are_examples}


def _hold(model_id: int) -> ModelSupport:
    """The row, locked until the transaction ends."""
    row = ModelSupport.objects.select_for_update().filter(pk=model_id).first()
    return row or find_model(model_id)


def _save_described(
    fields: Mapping[str, Any],
    actor: actors.Actor,
    *,
    model_id: int | None = None,
    if_unchanged: edits.Precondition | None = None,
) -> SavedModel:
    return save_model(
        name_pattern=fields["name_pattern"],
        provider=Provider(fields["provider"]),
        hosted_search=fields["hosted_search"],
        context_window=fields.get("context_window"),
        input_price=fields.get("input_price"),
        cached_input_price=fields.get("cached_input_price"),
        prices_are_examples=fields.get("prices_are_examples"),
        actor=actor,
        model_id=model_id,
        if_unchanged=if_unchanged,
    )


def _check(
    name_pattern: str, context_window: int | None, input_price: Price, cached_input_price: Price
) -> tuple[Decimal | None, Decimal | None]:
    """The prices as they are stored. Raises InvalidInput with every mistake."""
    problems = Problems()
    if not 0 < len(name_pattern) <= MAX_PATTERN_CHARS or not is_storable(name_pattern):
        problems.add("name_pattern", f"must have 1 to {MAX_PATTERN_CHARS} characters")
    if context_window is not None and not 1 <= context_window <= COUNT:
        problems.add("context_window", f"must be a number from 1 to {COUNT:,}")
    prices = (
        _read_price("input_price", input_price, problems),
        _read_price("cached_input_price", cached_input_price, problems),
    )
    problems.raise_if_any()
    return prices


def _read_price(field: str, value: Price, problems: Problems) -> Decimal | None:
    try:
        return read_price(value)
    except ValueError as mistake:
        problems.add(field, str(mistake))
        return None


def _plain(price: Decimal | None) -> float | None:
    """A price as JSON has it."""
    return None if price is None else float(price)
