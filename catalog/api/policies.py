"""REST calls for policies: read, change and roll back."""

from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Body, Router, Status

from catalog.access.callers import ADMIN_KEY, caller_of
from catalog.api.preconditions import precondition_of, send_version
from catalog.models import Policy
from catalog.request_bodies import Text, read_policy_fields
from catalog.schemas.policies import PolicyListOut, PolicyOut, RollBackIn, VersionListOut, VersionOut
from catalog.selectors.facts import read_policy
from catalog.selectors.policies import find_policy
from catalog.services import policies
from catalog.tasks import wake_workers_on_commit

router = Router(tags=["policies"], auth=ADMIN_KEY)

Fields = dict[str, Any]
CREATE_EXAMPLE = {"slug": "coding", "mode": "auto", "threshold_unit": "tools", "threshold": 20}


@router.get("/policies", operation_id="list_policies", summary="All policies", response=PolicyListOut)
def list_policies(request: HttpRequest) -> PolicyListOut:
    return PolicyListOut(items=[_describe(policy) for policy in Policy.objects.all()], next=None)


@router.post("/policies", operation_id="create_policy", summary="Make a policy", response={201: PolicyOut})
def create_policy(
    request: HttpRequest,
    fields: Annotated[Fields, Body(examples=[CREATE_EXAMPLE])],
) -> Status[PolicyOut]:
    """Fields in snake_case or camelCase; those left out take their defaults."""
    made = policies.create_policy(wanted=read_policy_fields(fields), actor=caller_of(request).actor)
    wake_workers_on_commit()
    return Status(201, _describe(made))


@router.get("/policies/{slug}", operation_id="get_policy", summary="One policy", response=PolicyOut)
def get_policy(request: HttpRequest, response: HttpResponse, slug: Text) -> PolicyOut:
    """Its `ETag` is for the `If-Match` of a change."""
    return _answer(response, find_policy(slug))


@router.patch("/policies/{slug}", operation_id="change_policy", summary="Change a policy", response=PolicyOut)
def change_policy(
    request: HttpRequest,
    response: HttpResponse,
    slug: Text,
    fields: Annotated[Fields, Body(examples=[{"mode": "auto", "threshold": 20000}])],
) -> PolicyOut:
    """Fields left out stay; null takes a field back to its default.

    With an `If-Match` that no longer holds nothing is changed, and a 412 tells what has changed.
    """
    policies.change_policy(
        policy=find_policy(slug),
        changed=read_policy_fields(fields),
        actor=caller_of(request).actor,
        if_unchanged=precondition_of(request),
    )
    wake_workers_on_commit()
    return _answer(response, find_policy(slug))


@router.delete(
    "/policies/{slug}", operation_id="delete_policy", summary="Remove a policy", response={204: None}
)
def delete_policy(request: HttpRequest, slug: Text) -> Status[None]:
    """Not while keys or sessions use it."""
    policies.delete_policy(policy=find_policy(slug), actor=caller_of(request).actor)
    return Status(204, None)


@router.get(
    "/policies/{slug}/versions",
    operation_id="list_policy_versions",
    summary="A policy as it was saved each time",
    response=VersionListOut,
)
def list_versions(request: HttpRequest, slug: Text) -> VersionListOut:
    """The latest first."""
    found = find_policy(slug).versions.order_by("-number")
    return VersionListOut(items=[VersionOut.from_orm(version) for version in found], next=None)


@router.post(
    "/policies/{slug}/rollback",
    operation_id="roll_back_policy",
    summary="Make a policy what it was",
    response=PolicyOut,
)
def roll_back(request: HttpRequest, response: HttpResponse, slug: Text, wanted: RollBackIn) -> PolicyOut:
    """That is a change too, and can be rolled back. `If-Match` as for other changes."""
    policies.roll_back(
        policy=find_policy(slug),
        number=wanted.version,
        actor=caller_of(request).actor,
        if_unchanged=precondition_of(request),
    )
    wake_workers_on_commit()
    return _answer(response, find_policy(slug))


def _answer(response: HttpResponse, policy: Policy) -> PolicyOut:
    send_version(response, policies.version_of(policy))
    return _describe(policy)


def _describe(policy: Policy) -> PolicyOut:
    return PolicyOut(slug=policy.slug, version=policy.version, fields=read_policy(policy).to_mapping())
