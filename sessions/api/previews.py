"""The REST call that previews a change of a policy, with what an agent would pay."""

from dataclasses import asdict
from typing import Any

from django.http import HttpRequest
from ninja import Field, Router, Schema
from pydantic import ConfigDict

from catalog.access.callers import ADMIN_KEY
from catalog.domain.choices import Loading, Outcome
from catalog.domain.decide import Decision
from catalog.domain.errors import InvalidInput
from catalog.domain.flips import Flip
from catalog.domain.thresholds import Measure
from catalog.models import Policy
from catalog.request_bodies import BodyIn, Choice, Text, example, join_fields, read_policy_fields
from catalog.selectors.facts import read_policy
from catalog.selectors.policies import find_policy
from catalog.selectors.preview import Preview, Proposal, preview
from sessions.offers import costs

router = Router(tags=["policies"], auth=ADMIN_KEY)


class PreviewIn(BodyIn):
    """Nothing of it is saved: fields of the policy as PATCH takes them, or below `policy`; servers'
    `deferLoading`, tools' `loading`.
    """

    model_config = ConfigDict(
        extra="allow", json_schema_extra={"example": {"mode": "auto", "threshold": 5000}}
    )

    policy: dict[str, Any] = Field(default_factory=dict)
    servers: dict[Text, bool | None] = Field(default_factory=dict)
    tools: dict[Text, Choice[Loading]] = Field(default_factory=dict)


class FlipDecisionOut(Schema):
    decision: Outcome
    reason: str


class FlipOut(Schema):
    name: str
    server: str
    tokens: int
    before: FlipDecisionOut | None
    after: FlipDecisionOut | None


class MeasureOut(Schema):
    unit: str
    value: float | None
    limit: float
    over: bool | None


class PreviewOut(Schema):
    """The tools whose outcome would change, and what an agent pays before and after."""

    model_config = example(
        {
            "active": True,
            "tokens_before": 1160,
            "tokens_after": 12210,
            "flips": [],
            "servers": [],
            "measure": {"unit": "chars", "value": 48000, "limit": 50000, "over": False},
            "readings": [],
        }
    )

    active: bool
    tokens_before: int = Field(description="As `tokens.sent` of a tool list: tools, search tool and prompt.")
    tokens_after: int
    flips: list[FlipOut]
    servers: list[dict[str, Any]] = Field(description="By the size of the change; definitions alone.")
    measure: MeasureOut
    readings: list[MeasureOut]


@router.post(
    "/policies/{slug}/preview",
    operation_id="preview_policy",
    summary="What would change",
    response=PreviewOut,
)
def preview_policy(request: HttpRequest, slug: Text, wanted: PreviewIn) -> PreviewOut:
    """A dry run: which tools would change, and what an agent would pay. Nothing is saved.

    It takes what PATCH takes, beside it changes of servers and tools.
    """
    fields = join_fields(read_policy_fields(wanted.model_extra or {}), wanted.policy)
    if fields.get("slug", slug) != slug:
        raise InvalidInput.at("policy.slug", "cannot be changed: agents know the policy by it")
    policy = find_policy(slug)
    proposal = Proposal(policy=fields, servers=wanted.servers, tools=wanted.tools)
    return _describe_preview(policy, fields, preview(policy=policy, proposal=proposal))


def _describe_preview(policy: Policy, fields: dict[str, Any], found: Preview) -> PreviewOut:
    wanted = read_policy(policy).change(fields)
    (then,) = costs.costs_of_proposals([(wanted, found.after.decisions)])
    return PreviewOut(
        active=found.after.active,
        tokens_before=costs.cost_of_policy(policy).sent_tokens,
        tokens_after=then.sent_tokens,
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


def _describe_decision(decision: Decision | None) -> FlipDecisionOut | None:
    return FlipDecisionOut(decision=decision.outcome, reason=str(decision.reason)) if decision else None


def _describe_measure(measure: Measure) -> MeasureOut:
    return MeasureOut(unit=str(measure.unit), value=measure.value, limit=measure.limit, over=measure.over)
