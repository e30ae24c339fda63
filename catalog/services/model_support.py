"""What changes the table of models."""

from django.db import IntegrityError, transaction

from catalog.access import Role
from catalog.domain.errors import Conflict, NotFound
from catalog.models import ModelSupport
from catalog.models.model_support import Provider
from catalog.services import changes


def save_model(
    *,
    name_pattern: str,
    provider: Provider,
    hosted_search: bool,
    context_window: int | None,
    actor: changes.Actor,
    model_id: int | None = None,
) -> ModelSupport:
    """Add a row, or change the one named. Raises Conflict where another row has the pattern."""
    changes.require(actor, Role.ADMIN)
    row = ModelSupport() if model_id is None else find_model(model_id)
    row.name_pattern, row.provider = name_pattern, provider
    row.hosted_search, row.context_window = hosted_search, context_window
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError:
        raise Conflict(f"There is a row for {name_pattern} already.") from None
    return row


def delete_model(*, model_id: int, actor: changes.Actor) -> None:
    changes.require(actor, Role.ADMIN)
    find_model(model_id).delete()


def find_model(model_id: int) -> ModelSupport:
    row = ModelSupport.objects.filter(pk=model_id).first()
    if row is None:
        raise NotFound("There is no such row in the table of models.")
    return row
