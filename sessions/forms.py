"""What the pages of agents take from a reader."""

from datetime import datetime, timedelta
from enum import StrEnum

from django import forms

from catalog.domain.choices import Ranker
from catalog.forms.filters import SELECT, FilterForm, search_box
from catalog.forms.numbers import CountField
from catalog.models import Policy
from sessions.models import Scope
from sessions.reading.listing import Liveness
from sessions.reading.session_table import SessionFilter

LIFETIMES = [("", "Never"), ("30", "In 30 days"), ("90", "In 90 days"), ("365", "In a year")]

LIMITS = [("", "Policy's results"), *((str(count), f"{count} results") for count in (5, 10, 25, 50))]
RANKERS = [("", "Policy's ranker"), *((ranker.value, ranker.value) for ranker in Ranker)]


class ReadAs(StrEnum):
    """Which field of an agent's call the text stands in."""

    QUERY = "query"
    PATTERN = "pattern"


class ConsoleView(StrEnum):
    HITS = "hits"
    RANKERS = "rankers"
    ANSWER = "answer"


class ConsoleForm(FilterForm):
    """A search in the URL; a value that cannot be understood gives way to the default."""

    q = forms.CharField(
        required=False,
        strip=False,
        widget=forms.TextInput(
            {
                "class": "form-control form-control-lg",
                "type": "search",
                "placeholder": "create a pull request",
                "aria-label": "Query",
                "autocomplete": "off",
                "spellcheck": "false",
                "data-search": "",
                "autofocus": "",
            }
        ),
    )
    read_as = forms.ChoiceField(
        required=False,
        choices=[(ReadAs.QUERY.value, "As a query"), (ReadAs.PATTERN.value, "As a regular expression")],
        widget=forms.Select({"class": "form-select", "aria-label": "Read as"}),
    )
    ranker = forms.ChoiceField(
        required=False,
        choices=RANKERS,
        widget=forms.Select({"class": "form-select", "aria-label": "Ranker"}),
    )
    limit = forms.ChoiceField(
        required=False, choices=LIMITS, widget=forms.Select({"class": "form-select", "aria-label": "Results"})
    )
    view = forms.ChoiceField(
        required=False,
        choices=[
            (ConsoleView.HITS.value, "Hits"),
            (ConsoleView.RANKERS.value, "Compare rankers"),
            (ConsoleView.ANSWER.value, "Agent's answer"),
        ],
    )

    def asked_query(self) -> str:
        return self.value("q")

    def asked_ranker(self) -> Ranker | None:
        """Unset leaves it to the policy, as it does for the number of results."""
        value = self.value("ranker")
        return Ranker(value) if value else None

    def asked_limit(self) -> int | None:
        value = self.value("limit")
        return int(value) if value else None

    def asked_reading(self) -> ReadAs:
        return ReadAs(self.value("read_as") or ReadAs.QUERY)

    def asked_view(self) -> ConsoleView:
        return ConsoleView(self.value("view") or ConsoleView.HITS)


class SessionFilterForm(FilterForm):
    q = forms.CharField(required=False, max_length=200, widget=search_box("Name, id or model"))
    state = forms.ChoiceField(
        required=False,
        choices=[
            ("", "Any state"),
            (Liveness.ACTIVE, "Active in the last hour"),
            (Liveness.IDLE, "Idle"),
            (Liveness.EXPIRED, "Expired"),
        ],
        widget=forms.Select({**SELECT, "aria-label": "State"}),
    )
    policy = forms.CharField(required=False, max_length=64)
    key = forms.IntegerField(required=False, min_value=1)

    def wanted(self) -> SessionFilter:
        state, key = self.value("state"), self.value("key")
        return SessionFilter(
            text=self.value("q"),
            liveness=Liveness(state) if state else None,
            policy=self.value("policy"),
            key_id=int(key) if key else None,
        )


class KeyForm(forms.Form):
    name = forms.CharField(
        max_length=100,
        help_text="Which agent or script will use it.",
        widget=forms.TextInput(
            {"class": "form-control", "placeholder": "coding-agent", "autocomplete": "off"}
        ),
    )
    policy = forms.ModelChoiceField(
        queryset=Policy.objects.all(),
        to_field_name="slug",
        empty_label=None,
        initial="default",
        help_text="Decides what the agent sees, and what is deferred for it.",
        widget=forms.Select({"class": "form-select"}),
    )
    scope = forms.ChoiceField(
        choices=Scope.choices,
        initial=Scope.AGENT,
        help_text="An admin key may change the catalog by REST.",
        widget=forms.Select({"class": "form-select"}),
    )
    lifetime_days = forms.ChoiceField(
        label="Expires", required=False, choices=LIFETIMES, widget=forms.Select({"class": "form-select"})
    )
    rate_limit_per_minute = CountField(
        label="Requests a minute",
        help_text="Past it a request is refused with 429, and told when to come back.",
        empty="no limit",
    )
    max_sessions = CountField(
        label="Most sessions",
        help_text="Kept at once for this key; past it the longest idle end.",
        empty="the policy's limit",
    )

    def expires_at(self, *, now: datetime) -> datetime | None:
        days = self.cleaned_data["lifetime_days"]
        return now + timedelta(days=int(days)) if days else None
