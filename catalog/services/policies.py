"""Creates, changes and deletes policies. Every save keeps the version before it."""

from collections.abc import Iterable, Mapping
from dataclasses import fields

from django.db import transaction
from django.db.models import ProtectedError

from catalog.access import actors
from catalog.access.roles import Role
from catalog.domain import policy as domain
from catalog.domain.errors import Conflict, InvalidInput, NotAllowed, NotFound
from catalog.domain.policy import DEFAULT_SLUG
from catalog.models import Change, Policy, PolicyVersion, Tool
from catalog.models.changes import Action, Subject
from catalog.selectors.facts import read_policy
from catalog.selectors.review import quarantines_in_force
from catalog.services import approvals, changes, decisions, edits
from catalog.services.catalog_lock import lock_catalog

# Fields that only an admin may change, and why.
FOR_ADMINS = {
    "quarantine": "quarantine guards what admins approve: only an admin may change it",
    "record_calls": "full records keep what agents send and get: only an admin may change this",
}
_FIELD_NAMES = tuple(field.name for field in fields(domain.Policy))


class FieldForAdmins(NotAllowed):
    """A change of a field that only an admin may make; `field` names it."""

    def __init__(self, field: str) -> None:
        super().__init__(FOR_ADMINS[field])
        self.field = field


@lock_catalog()
def create_policy(*, wanted: Mapping[str, object], actor: actors.Actor) -> Policy:
    """Make a policy; fields left out take their defaults. Raises Conflict when the slug is taken, and
    FieldForAdmins where somebody of less than an admin's role wants full records.
    """
    actors.require(actor, Role.EDITOR)
    if "slug" not in wanted:
        raise InvalidInput.at("policy.slug", "is missing")
    made = domain.Policy.from_mapping(wanted)
    if Policy.objects.filter(slug=made.slug).exists():
        raise Conflict(f"there is a policy {made.slug} already")
    _require_admin(actor, ["record_calls"] if made.record_calls is domain.RecordCalls.FULL else [])
    row = Policy(slug=made.slug)
    _trust_known(made)
    _save(row, made, actor)
    decisions.request_decisions()
    changes.record_change(
        actor=actor, subject=Subject.POLICY, name=row.slug, action=Action.CREATED, after=made.to_mapping()
    )
    return row


@lock_catalog()
def change_policy(
    *,
    policy: Policy,
    changed: Mapping[str, object],
    actor: actors.Actor,
    if_unchanged: edits.Precondition | None = None,
) -> Change | None:
    """Change the fields given, in camelCase or snake_case. None when all of them had that value already.

    Raises InvalidInput with every mistake, and changes nothing then; FieldForAdmins where somebody of less
    than an admin's role changes one of these; OutdatedEdit where the precondition does not hold. What only
    the gateway reads is in force at once, and no tool is decided anew.
    """
    actors.require(actor, Role.EDITOR)
    row = Policy.objects.select_for_update().get(pk=policy.pk)
    before = read_policy(row)
    after = before.change(changed)
    edits.require_current(_edit_row(row, before), if_unchanged, wanted=after.to_mapping())
    if after.slug != before.slug:
        raise InvalidInput.at("policy.slug", "cannot be changed: agents know the policy by it")
    if after == before:
        return None
    _require_admin(actor, [name for name in FOR_ADMINS if getattr(after, name) != getattr(before, name)])
    if after.quarantine is not before.quarantine:
        _trust_known(after)
    _keep_first_version(row, before)
    row.version += 1
    _save(row, after, actor)
    if after.decides_as(before):
        decisions.keep_decisions(row)
    else:
        decisions.request_decisions()
    return changes.record_change(
        actor=actor,
        subject=Subject.POLICY,
        name=row.slug,
        before=before.to_mapping(),
        after=after.to_mapping(),
    )


def version_of(policy: Policy) -> str:
    """The version of the policy's settings, for the precondition of an edit."""
    return edits.encode_version(_edit_row(policy, read_policy(policy)).present)


def roll_back(
    *, policy: Policy, number: int, actor: actors.Actor, if_unchanged: edits.Precondition | None = None
) -> Change | None:
    """Make the policy what it was in a version. That is a change too, and can be rolled back."""
    version = PolicyVersion.objects.filter(policy=policy, number=number).first()
    if version is None:
        raise NotFound(f"policy {policy.slug} has no version {number}")
    return change_policy(policy=policy, changed=version.fields, actor=actor, if_unchanged=if_unchanged)


@transaction.atomic
def delete_policy(*, policy: Policy, actor: actors.Actor) -> Change:
    """Raises Conflict for `default`, and while keys or sessions use the policy."""
    actors.require(actor, Role.ADMIN)
    if policy.slug == DEFAULT_SLUG:
        raise Conflict("the policy default serves keys made without one, and stays")
    before = read_policy(policy).to_mapping()
    try:
        policy.delete()
    except ProtectedError:
        raise Conflict(f"keys or sessions use the policy {policy.slug}") from None
    return changes.record_change(
        actor=actor, subject=Subject.POLICY, name=policy.slug, action=Action.DELETED, before=before
    )


def _edit_row(row: Policy, policy: domain.Policy) -> edits.EditedRow:
    fields = {name: value for name, value in policy.to_mapping().items() if name != "slug"}
    return edits.EditedRow(Subject.POLICY, row.slug, present=fields, shown=fields)


def _require_admin(actor: actors.Actor, changed: Iterable[str]) -> None:
    for field in changed:
        if actor.role < Role.ADMIN:
            raise FieldForAdmins(field)


def _trust_known(wanted: domain.Policy) -> None:
    """Trusts the tools known so far, so that quarantine only locks what comes from now on."""
    approvals.trust_known(wanted=wanted.quarantine, in_force=quarantines_in_force())


def _save(row: Policy, wanted: domain.Policy, actor: actors.Actor) -> None:
    if Tool.objects.filter(qualified_name=wanted.search_tool_name).exists():
        raise Conflict(f"a tool has the name {wanted.search_tool_name}: the search tool needs one of its own")
    for name in _FIELD_NAMES:
        value = getattr(wanted, name)
        setattr(row, name, list(value) if isinstance(value, tuple) else value)
    row.save()
    _keep_version(row, wanted, actor.label)


def _keep_first_version(row: Policy, fields_before: domain.Policy) -> None:
    """Stores the first version of a policy that a migration created, at its first change."""
    if not row.versions.exists():
        _keep_version(row, fields_before, actors.SYSTEM.label)


def _keep_version(row: Policy, wanted: domain.Policy, actor: str) -> None:
    PolicyVersion.objects.create(policy=row, number=row.version, fields=wanted.to_mapping(), actor=actor)
