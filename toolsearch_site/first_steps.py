"""The checklist of the Overview. A step is done when the data says so; each person may dismiss it for
themselves.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef, QuerySet

from catalog.models import ApiKey, SavedQuery, Server
from toolsearch_site.models import DismissedStep


class Step(StrEnum):
    """In the order in which they are taken."""

    SERVERS = "servers"
    KEY = "key"
    CALL = "call"
    QUERY = "query"


LABELS = {
    Step.SERVERS: "Add your servers",
    Step.KEY: "Create a key",
    Step.CALL: "Connect an agent",
    Step.QUERY: "Save a query",
}


@dataclass(frozen=True, slots=True)
class StepState:
    step: Step
    is_done: bool
    is_dismissed: bool

    @property
    def label(self) -> str:
        return LABELS[self.step]

    @property
    def is_open(self) -> bool:
        return not (self.is_done or self.is_dismissed)


def read_steps(user: User) -> list[StepState]:
    """Every step, in one query; an empty list once each is done or dismissed.

    What came with the demo counts for nothing. A key that was used has made the first call: its session may
    have ended since.
    """
    done = {
        Step.SERVERS: Server.objects.filter(demo=False),
        Step.KEY: ApiKey.objects.all(),
        Step.CALL: ApiKey.objects.filter(last_used_at__isnull=False),
        Step.QUERY: SavedQuery.objects.filter(demo=False),
    }
    dismissed = DismissedStep.objects.filter(user=OuterRef("pk"))
    columns = {f"done_{step}": Exists(rows) for step, rows in done.items()}
    columns |= {f"dismissed_{step}": Exists(dismissed.filter(step=step)) for step in Step}
    person: QuerySet[Any] = User.objects.filter(pk=user.pk)
    found = person.values(**columns).get()
    states = [StepState(step, found[f"done_{step}"], found[f"dismissed_{step}"]) for step in Step]
    return states if any(state.is_open for state in states) else []


def dismiss_step(user: User, step: Step) -> None:
    DismissedStep.objects.get_or_create(user=user, step=step)
