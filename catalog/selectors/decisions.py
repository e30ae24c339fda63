"""A policy's decided list, read as a whole: the old one or the new one, never a mixture."""

from dataclasses import dataclass

from django.db.models import F

from catalog.domain.errors import Unavailable
from catalog.models import CatalogVersion, DecidedList, Decision, Policy

ATTEMPTS = 10


@dataclass(frozen=True, slots=True)
class DecidedTool:
    tool_id: int
    name: str  # qualified
    server: str
    outcome: str
    reason: str
    chars: int


@dataclass(frozen=True, slots=True)
class DecidedTools:
    """`tools` in qualified-name order."""

    version: int
    tools: tuple[DecidedTool, ...]

    @property
    def is_active(self) -> bool:
        return any(tool.outcome == "defer" for tool in self.tools)


def count_behind() -> int:
    """Policies whose decided list does not follow the catalog or the policy yet."""
    following = DecidedList.objects.filter(
        catalog_version__gte=CatalogVersion.current(), policy_version=F("policy__version")
    )
    return Policy.objects.count() - following.count()


def read_decided(policy: Policy) -> DecidedTools:
    """The list of one version. Its rows and its version change together, so the same version before and after
    the rows means that nothing changed between.
    """
    for _ in range(ATTEMPTS):
        before = _read_version(policy)
        tools = _read_rows(policy)
        if _read_version(policy) == before:
            return DecidedTools(before, tools)
    raise Unavailable("the decisions change faster than they can be read; try again")


def _read_version(policy: Policy) -> int:
    version = DecidedList.objects.filter(policy=policy).values_list("version", flat=True).first()
    return version or 0


def _read_rows(policy: Policy) -> tuple[DecidedTool, ...]:
    rows = (
        Decision.objects.filter(policy=policy)
        .order_by("tool__qualified_name")
        .values_list("tool_id", "tool__qualified_name", "tool__server__name", "outcome", "reason", "chars")
    )
    return tuple(DecidedTool(*row) for row in rows)
