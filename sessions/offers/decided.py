"""Reads a policy's stored decisions as offered tools: all of them, or those changed since a version."""

from collections.abc import Sequence

from django.db.models import QuerySet

from catalog.domain.approvals import held_by
from catalog.domain.choices import Outcome, Reason
from catalog.domain.policy import Policy
from catalog.models import DecidedList, Decision, Tool
from sessions.offers import definitions
from sessions.offers.offer import Basis, OfferedTool

# Past this many changed tools, reading all of them is quicker than putting each in its place.
LARGEST_CHANGE_TOOLS = 1000

_OUTCOMES = {outcome.value: outcome for outcome in Outcome}
_REASONS = {reason.value: reason for reason in Reason}


def read_basis(policy_id: int) -> Basis | None:
    """None until a worker has decided the policy for the first time, and while all of it is being decided
    again.
    """
    rows = DecidedList.objects.filter(policy_id=policy_id, policy_version__gt=0)
    row = rows.values_list("policy_version", "over").first()
    return None if row is None else Basis(*row)


def read_all(policy_id: int, policy: Policy) -> list[OfferedTool]:
    return list(_read(_offered(policy_id, policy)).values())


def read_since(policy_id: int, policy: Policy, catalog_version: int) -> dict[int, OfferedTool | None] | None:
    """Every tool changed since a version of the catalog; None for one that is not offered now.

    Returns None instead where there are too many. The decision of an unchanged tool can only have changed
    with the basis. A tool whose row was deleted is not in the result.
    """
    newer = Tool.objects.filter(facts_version__gt=catalog_version).order_by()
    touched = list(newer.values_list("pk", flat=True)[: LARGEST_CHANGE_TOOLS + 1])
    if len(touched) > LARGEST_CHANGE_TOOLS:
        return None
    return {**dict.fromkeys(touched), **_read(_offered(policy_id, policy).filter(tool_id__in=touched))}


def count_decided(policy_id: int, policy: Policy) -> int:
    return _offered(policy_id, policy).count()


def _offered(policy_id: int, policy: Policy) -> QuerySet[Decision]:
    """Leaves out definitions that quarantine locks, even before the decisions have followed, and tools with
    the search tool's name.
    """
    decisions = Decision.objects.filter(policy_id=policy_id).exclude(reason=Reason.SEARCH_TOOL)
    held: Sequence[str] = sorted(held_by(policy.quarantine))
    return decisions.exclude(tool__approval__in=held) if held else decisions


def _read(decisions: QuerySet[Decision]) -> dict[int, OfferedTool]:
    columns = ("tool_id", "tool__digest", "tool__qualified_name", "outcome", "reason")
    rows = list(decisions.values_list(*columns))
    texts = definitions.read_definitions({tool_id: (digest, name) for tool_id, digest, name, *_ in rows})
    return {
        tool_id: OfferedTool(texts[tool_id], _OUTCOMES[outcome], _REASONS[reason])
        for tool_id, _, _, outcome, reason in rows
        if tool_id in texts
    }
