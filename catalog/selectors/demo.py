"""The demo for pages: how much of it is there, and whether it is counted."""

from dataclasses import dataclass

from django.db.models import Count, Q

from catalog.models import Server


@dataclass(frozen=True, slots=True)
class DemoState:
    """`own` are servers that did not come with the demo."""

    servers: int
    enabled: int
    own: int


def read_demo() -> DemoState:
    is_demo = Q(demo=True)
    return DemoState(
        **Server.objects.aggregate(
            servers=Count("pk", filter=is_demo),
            enabled=Count("pk", filter=is_demo & Q(enabled=True)),
            own=Count("pk", filter=~is_demo),
        )
    )
