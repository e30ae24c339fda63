"""Filter forms of servers, tools and changes."""

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta

from django import forms
from django.utils import timezone

from catalog.console.filters import FilterForm, SortedForm, both_ways, search_box
from catalog.domain.choices import Loading, Outcome, Reason
from catalog.forms.tools import LOADING_WORDS
from catalog.models.changes import Action, Subject
from catalog.models.servers import Status
from catalog.models.tools import State
from catalog.selectors import policies
from catalog.selectors.changes import ChangeFilter
from catalog.selectors.servers import ServerSort
from catalog.selectors.tool_decisions import KEPT_REASONS, REASON_WORDS
from catalog.selectors.tools import ToolFilter, ToolSort

ANY_STATE = "any"
STATUSES_BY_URGENCY = (Status.FAILING, Status.SIGN_IN_NEEDED, Status.WAITING, Status.OK, Status.DISABLED)
PERIODS = {
    "": "Any time",
    "1": "Last hour",
    "24": "Last 24 hours",
    "168": "Last 7 days",
    "720": "Last 30 days",
}
SIZES_TOKENS = (100, 250, 500, 1000, 2500)


def day_box() -> forms.DateInput:
    return forms.DateInput({"type": "date"}, format="%Y-%m-%d")


class ServerFilterForm(SortedForm):
    q = forms.CharField(required=False, widget=search_box("Find a server"))
    status = forms.ChoiceField(
        required=False,
        choices=[("", "Any status"), *((one.value, one.label) for one in STATUSES_BY_URGENCY)],
        widget=forms.Select({"aria-label": "Status"}),
    )
    sort = forms.ChoiceField(required=False, choices=both_ways(ServerSort))

    def sort_order(self) -> ServerSort:
        return ServerSort(self.column() or ServerSort.STATUS)

    def wanted_status(self) -> Status | None:
        status = self.value("status")
        return Status(status) if status else None


class ToolFilterForm(SortedForm):
    q = forms.CharField(required=False, max_length=200, widget=search_box("Names and descriptions"))
    server = forms.CharField(required=False, max_length=100)
    loading = forms.ChoiceField(
        required=False,
        choices=[("", "Any loading"), *LOADING_WORDS.items()],
        widget=forms.Select({"aria-label": "Loading"}),
    )
    state = forms.ChoiceField(
        required=False,
        choices=[("", "Active"), (State.HIDDEN, "Hidden"), (State.GONE, "Gone"), (ANY_STATE, "Any state")],
        widget=forms.Select({"aria-label": "State"}),
    )
    policy = forms.CharField(required=False, max_length=64)
    decision = forms.ChoiceField(
        required=False,
        choices=[("", "Any decision"), (Outcome.LOAD, "Loads"), (Outcome.DEFER, "Deferred")],
        widget=forms.Select({"aria-label": "Decision"}),
    )
    reason = forms.ChoiceField(
        required=False,
        choices=[
            ("", "Any reason"),
            *((reason, REASON_WORDS[reason].capitalize()) for reason in KEPT_REASONS),
        ],
        widget=forms.Select({"aria-label": "Reason"}),
    )
    tag = forms.CharField(required=False, max_length=40)
    size = forms.ChoiceField(
        required=False,
        choices=[
            ("", "Any size"),
            *((size, f"{size:,} tokens or more") for size in SIZES_TOKENS),
        ],
        widget=forms.Select({"aria-label": "Size"}),
    )
    sort = forms.ChoiceField(required=False, choices=both_ways(ToolSort))

    def wanted(self) -> ToolFilter:
        loading, state = self.value("loading"), self.value("state")
        outcome, reason = self.value("decision"), self.value("reason")
        return ToolFilter(
            text=self.value("q"),
            server=self.value("server"),
            loading=Loading(loading) if loading else None,
            state=None if state == ANY_STATE else State(state or State.ACTIVE),
            policy=policies.choose_policy(self.value("policy")),
            outcome=Outcome(outcome) if outcome else None,
            reason=Reason(reason) if reason else None,
            tag=self.value("tag"),
            least_tokens=int(self.value("size") or 0),
            sort=ToolSort(self.column() or ToolSort.SIZE),
            is_reversed=self.is_reversed,
        )


class ChangeFilterForm(FilterForm):
    q = forms.CharField(required=False, widget=search_box("Name of what changed"))
    actor = forms.CharField(required=False)
    subject = forms.ChoiceField(
        required=False,
        choices=[("", "Any subject"), *Subject.choices],
        widget=forms.Select({"aria-label": "Subject"}),
    )
    action = forms.ChoiceField(
        required=False,
        choices=[("", "Any action"), *Action.choices],
        widget=forms.Select({"aria-label": "Action"}),
    )
    when = forms.ChoiceField(
        required=False, choices=list(PERIODS.items()), widget=forms.Select({"aria-label": "When"})
    )
    first_day = forms.DateField(required=False, widget=day_box())
    last_day = forms.DateField(required=False, widget=day_box())

    def wanted(self, *, now: datetime) -> ChangeFilter:
        subject, action = self.value("subject"), self.value("action")
        hours = self.value("when")
        since = [now - timedelta(hours=int(hours))] if hours else []
        return ChangeFilter(
            name=self.value("q"),
            actor=self.value("actor"),
            subject=Subject(subject) if subject else None,
            action=Action(action) if action else None,
            since=max([*since, *self._moment("first_day", time.min)], default=None),
            until=next(self._moment("last_day", time.max), None),
        )

    def _moment(self, field: str, at: time) -> Iterator[datetime]:
        """The first or last moment of a day, in the time zone of the pages."""
        if day := self.value(field):
            yield timezone.make_aware(datetime.combine(date.fromisoformat(day), at))
