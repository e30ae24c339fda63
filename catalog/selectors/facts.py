"""Tools and policies as the deciding rules take them."""

from collections.abc import Iterator
from dataclasses import dataclass, fields

from catalog.domain import policy
from catalog.domain.choices import Approval, Kind, Loading
from catalog.domain.facts import ToolFacts, asks_always_load
from catalog.models import Policy
from catalog.models.tools import ToolQuerySet

_COLUMNS = (
    "pk",
    "qualified_name",
    "name",
    "chars",
    "loading",
    "meta",
    "approval",
    "server__name",
    "server__kind",
    "server__defer_loading",
)


_POLICY_FIELDS = tuple(field.name for field in fields(policy.Policy))


@dataclass(frozen=True, slots=True)
class KnownTool:
    """A tool's facts with its id."""

    id: int
    facts: ToolFacts


def read_policy(row: Policy) -> policy.Policy:
    """Never fails, because the policy was validated when it was saved."""
    return policy.Policy.from_mapping({name: getattr(row, name) for name in _POLICY_FIELDS})


def read_facts(tools: ToolQuerySet) -> Iterator[KnownTool]:
    """One query, without definitions."""
    kinds, loadings = {kind.value: kind for kind in Kind}, {loading.value: loading for loading in Loading}
    approvals = {approval.value: approval for approval in Approval}
    for pk, name, tool, chars, loading, meta, approval, server, kind, defers in tools.values_list(*_COLUMNS):
        facts = ToolFacts(
            name=name,
            tool=tool,
            server=server,
            kind=kinds[kind],
            chars=chars,
            loading=loadings[loading],
            server_defers=defers,
            always_load=asks_always_load(meta),
            approval=approvals[approval],
        )
        yield KnownTool(pk, facts)
