"""Policies as the domain knows them, and what changes them."""

from collections.abc import Mapping
from dataclasses import fields

from django.db import transaction

from catalog.access import Role
from catalog.domain import policy as domain
from catalog.models import Policy
from catalog.models.changes import Action, Subject
from catalog.services import changes

FIELD_NAMES = tuple(field.name for field in fields(domain.Policy))


def read_policy(row: Policy) -> domain.Policy:
    """The row as the domain's policy. It was valid when it was saved, so this never fails."""
    values = {name: getattr(row, name) for name in FIELD_NAMES}
    return domain.Policy.from_mapping(values)


@transaction.atomic
def change_policy(*, policy: Policy, changed: Mapping[str, object], actor: changes.Actor) -> bool:
    """Change the fields given, in camelCase or snake_case. False when all of them had that value already.

    Raises InvalidInput with every mistake, and changes nothing then.
    """
    changes.require(actor, Role.EDITOR)
    row = Policy.objects.select_for_update().get(pk=policy.pk)
    before = read_policy(row)
    after = before.change(changed)
    if after == before:
        return False
    for name in FIELD_NAMES:
        value = getattr(after, name)
        setattr(row, name, list(value) if isinstance(value, tuple) else value)
    row.save(update_fields=[*FIELD_NAMES, "updated_at"])
    changes.record(
        actor=actor,
        subject=Subject.POLICY,
        name=row.slug,
        action=Action.CHANGED,
        before=before.to_mapping(),
        after=after.to_mapping(),
    )
    return True
