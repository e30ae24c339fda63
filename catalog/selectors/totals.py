"""Sums over the whole catalog."""

from dataclasses import dataclass

from django.db.models import Count, Q, Sum
from django.db.models.functions import Coalesce

from catalog.domain.sizes import tokens_of
from catalog.models import Server, Tool

CONTEXT_WINDOW_TOKENS = 200_000
BUDGET_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class CatalogTotals:
    """Sums over every listed tool: its server enabled, itself neither hidden nor gone."""

    servers: int
    disabled_servers: int
    tools: int
    chars: int

    @property
    def tokens(self) -> int:
        return tokens_of(self.chars)

    @property
    def tokens_per_tool(self) -> int:
        return round(self.tokens / self.tools) if self.tools else 0

    def share_of(self, chars: int) -> float:
        return chars / self.chars if self.chars else 0.0


def read_totals() -> CatalogTotals:
    servers = Server.objects.aggregate(
        all_enabled=Count("pk", filter=Q(enabled=True)), all_disabled=Count("pk", filter=Q(enabled=False))
    )
    tools = Tool.objects.listed().aggregate(count=Count("pk"), all_chars=Coalesce(Sum("chars"), 0))
    return CatalogTotals(
        servers=servers["all_enabled"],
        disabled_servers=servers["all_disabled"],
        tools=tools["count"],
        chars=tools["all_chars"],
    )
