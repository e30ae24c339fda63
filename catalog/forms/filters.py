"""Filters of lists, as they stand in the URL."""

from datetime import datetime, timedelta

from django import forms

from catalog.domain.choices import Loading, Outcome, Reason
from catalog.models.changes import Action, Subject
from catalog.models.tools import State
from catalog.selectors import policies
from catalog.selectors.changes import ChangeFilter
from catalog.selectors.reasons import KEPT_REASONS, REASON_WORDS
from catalog.selectors.servers import ServerSort
from catalog.selectors.tools import ToolFilter, ToolSort

ANY_STATE = "any"
SELECT = {"class": "form-select"}
PERIODS = {
    "": "Any time",
    "1": "Last hour",
    "24": "Last 24 hours",
    "168": "Last 7 days",
    "720": "Last 30 days",
}
SIZES_TOKENS = (100, 250, 500, 1000, 2500)


def search_box(label: str) -> forms.TextInput:
    """The box that `/` jumps to."""
    attributes = {
        "class": "form-control",
        "type": "search",
        "autocomplete": "off",
        "data-search": "",
        "placeholder": label,
        "aria-label": label,
    }
    return forms.TextInput(attributes)


class FilterForm(forms.Form):
    """A filter in the URL: a value that cannot be understood is left out, since links live long."""

    def value(self, field: str) -> str:
        self.is_valid()
        return str(self.cleaned_data.get(field) or "")


class ServerFilterForm(FilterForm):
    q = forms.CharField(required=False, widget=search_box("Find a server"))
    sort = forms.ChoiceField(required=False, choices=[(sort, sort) for sort in ServerSort])

    def sort_order(self) -> ServerSort:
        return ServerSort(self.value("sort") or ServerSort.SIZE)


class ToolFilterForm(FilterForm):
    q = forms.CharField(required=False, max_length=200, widget=search_box("Names and descriptions"))
    server = forms.CharField(required=False, max_length=100)
    loading = forms.ChoiceField(
        required=False,
        choices=[
            ("", "Any loading"),
            (Loading.INHERIT, "Inherit"),
            (Loading.ALWAYS, "Always load"),
            (Loading.DEFER, "Defer"),
        ],
        widget=forms.Select({**SELECT, "aria-label": "Loading"}),
    )
    state = forms.ChoiceField(
        required=False,
        choices=[("", "Active"), (State.HIDDEN, "Hidden"), (State.GONE, "Gone"), (ANY_STATE, "Any state")],
        widget=forms.Select({**SELECT, "aria-label": "State"}),
    )
    policy = forms.CharField(required=False, max_length=64)
    decision = forms.ChoiceField(
        required=False,
        choices=[("", "Any decision"), (Outcome.LOAD, "Loads"), (Outcome.DEFER, "Deferred")],
        widget=forms.Select({**SELECT, "aria-label": "Decision"}),
    )
    reason = forms.ChoiceField(
        required=False,
        choices=[
            ("", "Any reason"),
            *((reason, REASON_WORDS[reason].capitalize()) for reason in KEPT_REASONS),
        ],
        widget=forms.Select({**SELECT, "aria-label": "Reason"}),
    )
    tag = forms.CharField(required=False, max_length=40)
    size = forms.ChoiceField(
        required=False,
        choices=[
            ("", "Any size"),
            *((size, f"{size:,} tokens or more") for size in (100, 250, 500, 1000, 2500)),
        ],
        widget=forms.Select({**SELECT, "aria-label": "Size"}),
    )
    sort = forms.ChoiceField(required=False, choices=[(sort, sort) for sort in ToolSort])

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
            sort=ToolSort(self.value("sort") or ToolSort.SIZE),
        )


class ChangeFilterForm(FilterForm):
    q = forms.CharField(required=False, widget=search_box("Name of what changed"))
    actor = forms.CharField(required=False)
    subject = forms.ChoiceField(
        required=False,
        choices=[("", "Any subject"), *Subject.choices],
        widget=forms.Select({**SELECT, "aria-label": "Subject"}),
    )
    action = forms.ChoiceField(
        required=False,
        choices=[("", "Any action"), *Action.choices],
        widget=forms.Select({**SELECT, "aria-label": "Action"}),
    )
    when = forms.ChoiceField(
        required=False, choices=list(PERIODS.items()), widget=forms.Select({**SELECT, "aria-label": "When"})
    )

    def wanted(self, *, now: datetime) -> ChangeFilter:
        subject, action = self.value("subject"), self.value("action")
        hours = self.value("when")
        return ChangeFilter(
            name=self.value("q"),
            actor=self.value("actor"),
            subject=Subject(subject) if subject else None,
            action=Action(action) if action else None,
            since=now - timedelta(hours=int(hours)) if hours else None,
        )
