"""The review: tools that quarantine locks, that changed since their approval, or that have marks."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from django.db.models import F, Q

from catalog.console.cursors import read_cursor, write_cursor
from catalog.console.paging import Page, cut_page
from catalog.domain.approvals import held_by, newly_held
from catalog.domain.choices import Approval, Quarantine
from catalog.domain.decide import locked_tools
from catalog.domain.marking import Mark
from catalog.models import Policy, Tool, ToolRevision
from catalog.models.tools import ToolQuerySet
from catalog.selectors.facts import read_facts, read_policy

REVIEW_ROWS = 20
_IS_APPROVED_BY_SOMEBODY = Q(approval=Approval.APPROVED) & ~Q(approved_by="")


class Waiting(StrEnum):
    """Why a tool is in the review; there may be several reasons."""

    LOCKED = "locked"
    CHANGED = "changed"
    NEW = "new"
    MARKED = "marked"


@dataclass(frozen=True, slots=True)
class ReviewFilter:
    server: str = ""
    waiting: Waiting | None = None

    @property
    def is_default(self) -> bool:
        return self == ReviewFilter()


@dataclass(frozen=True, slots=True)
class ToolReview:
    """A tool in the review: `baseline` is the form that a change is compared with, `locked_in` names the
    policies that lock it.
    """

    tool: Tool
    marks: tuple[Mark, ...]
    locked_in: tuple[str, ...]
    baseline: ToolRevision | None
    present: ToolRevision | None

    @property
    def before(self) -> ToolRevision | None:
        """The form to compare with; None where the tool still has it."""
        return self.baseline if self.is_changed else None

    @property
    def is_changed(self) -> bool:
        return self.tool.approval == Approval.CHANGED

    @property
    def is_new(self) -> bool:
        return self.tool.approval == Approval.NEW

    @property
    def is_settled(self) -> bool:
        """Whether an admin has approved exactly this form."""
        return self.tool.approval == Approval.APPROVED and bool(self.tool.approved_by)


@dataclass(frozen=True, slots=True)
class ReviewPage:
    reviews: list[ToolReview]
    next: str | None


@dataclass(frozen=True, slots=True)
class ServerToReview:
    """A server's tools in the review: `seen` changes whenever one of them does."""

    tools: int
    seen: str


def quarantines_in_force() -> list[Quarantine]:
    return [Quarantine(value) for value in Policy.objects.values_list("quarantine", flat=True).distinct()]


def count_to_review() -> int:
    return tools_to_review().count()


def count_locked(row: Policy) -> int:
    """How many tools the policy would show if they were approved."""
    if row.quarantine == Quarantine.OFF:
        return 0
    held = read_facts(Tool.objects.listed().held_by(row.quarantine))
    return len(locked_tools((known.facts for known in held), read_policy(row)))


def tools_to_review(wanted: ReviewFilter | None = None) -> ToolQuerySet:
    """Listed tools that some policy locks, that changed since their approval, or that have
    unapproved marks.
    """
    wanted = wanted or ReviewFilter()
    held = frozenset[Approval]().union(*map(held_by, quarantines_in_force()))
    is_locked = Q(approval__in=held)
    is_changed = Q(approval=Approval.CHANGED, approved_at__isnull=False)
    is_marked = Q(mark_count__gt=0) & ~_IS_APPROVED_BY_SOMEBODY
    tools = Tool.objects.listed().filter(is_locked | is_changed | is_marked)
    if wanted.server:
        tools = tools.filter(server__name=wanted.server)
    narrowed = {
        Waiting.LOCKED: is_locked,
        Waiting.CHANGED: Q(approval=Approval.CHANGED),
        Waiting.NEW: Q(approval=Approval.NEW),
        Waiting.MARKED: Q(mark_count__gt=0),
    }
    return tools.filter(narrowed[wanted.waiting]) if wanted.waiting else tools


def reviews_for_page(wanted: ReviewFilter, *, page: str | int = 1) -> Page[ToolReview]:
    """By server, so that a server's tools are together."""
    tools = tools_to_review(wanted).select_related("server").order_by("server__name", "qualified_name")
    shown = cut_page(tools, page, size=REVIEW_ROWS)
    return shown.with_rows(describe_tools(shown.rows))


def list_reviews(wanted: ReviewFilter, *, limit: int, cursor: str | None) -> ReviewPage:
    """By qualified name, for REST paging."""
    tools = tools_to_review(wanted).select_related("server").order_by("qualified_name")
    if cursor:
        tools = tools.filter(qualified_name__gt=read_cursor(cursor, parts=1)[0])
    found = list(tools[: limit + 1])
    following = write_cursor(found[limit - 1].qualified_name) if len(found) > limit else None
    return ReviewPage(describe_tools(found[:limit]), following)


def describe_tools(tools: Sequence[Tool]) -> list[ToolReview]:
    """With the details for pages and REST; at most three queries for any number of tools."""
    locked_in = _policies_that_lock(tools)
    forms = _forms_of(tools)
    return [
        ToolReview(
            tool=tool,
            marks=read_marks(tool),
            locked_in=tuple(locked_in.get(tool.pk, ())),
            baseline=forms.get((tool.pk, tool.baseline_digest)),
            present=forms.get((tool.pk, tool.digest)),
        )
        for tool in tools
    ]


def read_marks(tool: Tool) -> tuple[Mark, ...]:
    return tuple(Mark.from_mapping(kept) for kept in tool.marks or ())


def servers_to_review(names: Iterable[str]) -> dict[str, ServerToReview]:
    """By server's name, in one query."""
    forms: dict[str, dict[str, str]] = defaultdict(dict)
    found = tools_to_review().filter(server__name__in=set(names))
    for server, name, digest in found.values_list("server__name", "qualified_name", "digest"):
        forms[server][name] = digest
    return {server: ServerToReview(len(each), fingerprint(each)) for server, each in forms.items()}


def trusted_on(wanted: Quarantine) -> set[str]:
    """Qualified names of the tools that would be trusted if a policy's quarantine became this."""
    held = newly_held(wanted, quarantines_in_force())
    unseen = Tool.objects.filter(approved_at=None, approval__in=held)
    return set(unseen.values_list("qualified_name", flat=True))


def forms_to_review(server: str) -> dict[str, str]:
    """Digests of a server's tools in the review, by qualified name."""
    found = tools_to_review(ReviewFilter(server=server))
    return dict(found.order_by("qualified_name").values_list("qualified_name", "digest"))


def fingerprint(forms: Mapping[str, str]) -> str:
    """One hash of many forms, which differs whenever one of them does."""
    lines = (f"{name} {digest}" for name, digest in sorted(forms.items()))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _policies_that_lock(tools: Sequence[Tool]) -> dict[int, list[str]]:
    """Policies' slugs by tool id; a policy that does not show the tool anyway is left out."""
    rows = list(Policy.objects.exclude(quarantine=Quarantine.OFF))
    if not rows:
        return {}
    known = list(read_facts(Tool.objects.filter(pk__in=[tool.pk for tool in tools])))
    ids = {each.facts.name: each.id for each in known}
    found: dict[int, list[str]] = defaultdict(list)
    for row in rows:
        for facts in locked_tools([each.facts for each in known], read_policy(row)):
            found[ids[facts.name]].append(row.slug)
    return found


def _forms_of(tools: Sequence[Tool]) -> dict[tuple[int, str], ToolRevision]:
    """The current form and its baseline, by tool and digest."""
    is_wanted = Q(digest=F("tool__baseline_digest")) | Q(digest=F("tool__digest"))
    rows = ToolRevision.objects.filter(is_wanted, tool__in=[tool.pk for tool in tools]).order_by("number")
    return {(row.tool_id, row.digest): row for row in rows}
