"""Policies by REST, for admins: read, changed, rolled back, and tried out before."""

from dataclasses import asdict
from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Body, Router, Status

from catalog.callers import ADMIN_KEY, caller_of
from catalog.domain.decide import Decision
from catalog.domain.errors import InvalidInput
from catalog.domain.flips import Flip
from catalog.domain.thresholds import Measure
from catalog.models import Policy
from catalog.schemas import (
    DecisionOut,
    FlipOut,
    MeasureOut,
    PolicyListOut,
    PolicyOut,
    PreviewIn,
    PreviewOut,
    RollBackIn,
    Text,
    VersionListOut,
    VersionOut,
)
from catalog.selectors.facts import read_policy
from catalog.selectors.policies import find_policy
from catalog.selectors.preview import Preview, Proposal, preview
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
    made = policies.create_policy(wanted=fields, actor=caller_of(request).actor)
    wake_workers_on_commit()
    return Status(201, _describe(made))


@router.get("/policies/{slug}", operation_id="get_policy", summary="One policy", response=PolicyOut)
def get_policy(request: HttpRequest, slug: Text) -> PolicyOut:
    return _describe(find_policy(slug))


@router.patch("/policies/{slug}", operation_id="change_policy", summary="Change a policy", response=PolicyOut)
def change_policy(
    request: HttpRequest,
    slug: Text,
    fields: Annotated[Fields, Body(examples=[{"mode": "auto", "threshold": 20000}])],
) -> PolicyOut:
    """Fields left out stay; null takes a field back to its default."""
    policies.change_policy(policy=find_policy(slug), changed=fields, actor=caller_of(request).actor)
    wake_workers_on_commit()
    return _describe(find_policy(slug))


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
def roll_back(request: HttpRequest, slug: Text, wanted: RollBackIn) -> PolicyOut:
    """That is a change too, and can be rolled back."""
    policies.roll_back(policy=find_policy(slug), number=wanted.version, actor=caller_of(request).actor)
    wake_workers_on_commit()
    return _describe(find_policy(slug))


@router.post(
    "/policies/{slug}/preview",
    operation_id="preview_policy",
    summary="What would flip",
    response=PreviewOut,
)
def preview_policy(request: HttpRequest, slug: Text, wanted: PreviewIn) -> PreviewOut:
    """A dry run: which tools and tokens a change would flip. Nothing is saved."""
    if "slug" in wanted.policy:
        raise InvalidInput.at("policy.slug", "cannot be changed: agents know the policy by it")
    proposal = Proposal(policy=wanted.policy, servers=wanted.servers, tools=wanted.tools)
    return _describe_preview(preview(policy=find_policy(slug), proposal=proposal))


def _describe(policy: Policy) -> PolicyOut:
    return PolicyOut(slug=policy.slug, version=policy.version, fields=read_policy(policy).to_mapping())


def _describe_preview(found: Preview) -> PreviewOut:
    return PreviewOut(
        active=found.after.active,
        tokens_before=found.dry_run.tokens_before,
        tokens_after=found.dry_run.tokens_after,
        flips=[_describe_flip(flip) for flip in found.dry_run.flips],
        servers=[asdict(server) for server in found.dry_run.servers],
        measure=_describe_measure(found.after.measure),
        readings=[_describe_measure(reading) for reading in found.readings],
    )


def _describe_flip(flip: Flip) -> FlipOut:
    return FlipOut(
        name=flip.name,
        server=flip.server,
        tokens=flip.tokens,
        before=_describe_decision(flip.before),
        after=_describe_decision(flip.after),
    )


def _describe_decision(decision: Decision | None) -> DecisionOut | None:
    return DecisionOut(decision=decision.outcome, reason=str(decision.reason)) if decision else None


def _describe_measure(measure: Measure) -> MeasureOut:
    return MeasureOut(unit=str(measure.unit), value=measure.value, limit=measure.limit, over=measure.over)
