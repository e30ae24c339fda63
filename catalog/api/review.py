"""REST calls of the review: tools that wait for an admin, and their approval."""

from django.http import HttpRequest
from ninja import Query, Router

from catalog.access.callers import ADMIN_KEY, caller_of
from catalog.domain.choices import Approval
from catalog.schemas.review import (
    ApprovedOut,
    ApproveIn,
    ApproveOut,
    MarkOut,
    ReviewListOut,
    ReviewOut,
    ReviewQuery,
)
from catalog.selectors import review
from catalog.selectors.review import ReviewFilter, ToolReview
from catalog.services import approvals
from catalog.tasks import wake_workers_on_commit

router = Router(tags=["review"], auth=ADMIN_KEY)


@router.get("/review", operation_id="list_review", summary="What waits for an admin", response=ReviewListOut)
def list_review(request: HttpRequest, asked: Query[ReviewQuery]) -> ReviewListOut:
    """Tools that quarantine holds back, that changed since they were approved, or that have marks."""
    wanted = ReviewFilter(server=asked.server, waiting=asked.waiting)
    page = review.list_reviews(wanted, limit=asked.limit, cursor=asked.cursor)
    return ReviewListOut(items=[_describe(found) for found in page.reviews], next=page.next)


@router.post(
    "/review/approve", operation_id="approve_tools", summary="Approve definitions", response=ApproveOut
)
def approve_tools(request: HttpRequest, wanted: ApproveIn) -> ApproveOut:
    """All of them or none: 409 where one has changed since it was looked at."""
    settled = approvals.approve_tools(seen=wanted.tools, actor=caller_of(request).actor)
    wake_workers_on_commit()
    return ApproveOut(approved=settled.count)


def _describe(found: ToolReview) -> ReviewOut:
    tool, baseline = found.tool, found.baseline
    return ReviewOut(
        name=tool.qualified_name,
        server=tool.server.name,
        approval=Approval(tool.approval),
        approved=ApprovedOut(
            revision=baseline.number if baseline else None, by=tool.approved_by, at=tool.approved_at
        ),
        locked_in=list(found.locked_in),
        marks=[MarkOut.model_validate({**mark.to_mapping(), "words": mark.words}) for mark in found.marks],
        digest=tool.digest,
        before=found.before.definition if found.before else None,
        after=found.present.definition if found.present else None,
    )
