"""Forms of the agents' pages."""

import uuid
from enum import StrEnum

from django import forms

from catalog.console.filters import FilterForm, search_box
from catalog.domain.choices import Ranker
from catalog.domain.limits import RESULTS
from sessions.models import CallOutcome, Via
from sessions.selectors.calls import CallFilter
from sessions.selectors.own_sessions import Liveness
from sessions.selectors.session_table import SessionFilter

LIMITS = [("", "Policy's results"), *((str(count), f"{count} results") for count in (5, 10, 25, RESULTS))]
RANKERS = [("", "Policy's ranker"), *((ranker.value, ranker.value) for ranker in Ranker)]


class ReadAs(StrEnum):
    """Which field of the search call the text is sent in."""

    QUERY = "query"
    PATTERN = "pattern"


class ConsoleView(StrEnum):
    HITS = "hits"
    RANKERS = "rankers"
    ANSWER = "answer"


class ConsoleForm(FilterForm):
    """A search in the URL; an invalid value falls back to the default."""

    q = forms.CharField(
        required=False,
        strip=False,
        widget=forms.TextInput(
            {
                "class": "form-control-lg",
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
        widget=forms.Select({"aria-label": "Read as"}),
    )
    ranker = forms.ChoiceField(
        required=False,
        choices=RANKERS,
        widget=forms.Select({"aria-label": "Ranker"}),
    )
    limit = forms.ChoiceField(required=False, choices=LIMITS, widget=forms.Select({"aria-label": "Results"}))
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
        """None leaves the choice to the policy."""
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
        widget=forms.Select({"aria-label": "State"}),
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


class CallFilterForm(FilterForm):
    q = forms.CharField(required=False, max_length=100, widget=search_box("Client"))
    tool = forms.CharField(
        required=False,
        max_length=64,
        widget=forms.TextInput({"placeholder": "Any tool", "aria-label": "Tool", "spellcheck": "false"}),
    )
    outcome = forms.ChoiceField(
        required=False,
        choices=[("", "Any outcome"), *CallOutcome.choices],
        widget=forms.Select({"aria-label": "Outcome"}),
    )
    via = forms.ChoiceField(
        required=False,
        choices=[("", "Called any way"), *Via.choices],
        widget=forms.Select({"aria-label": "How it was called"}),
    )
    server = forms.CharField(required=False, max_length=100)
    key = forms.CharField(required=False, max_length=100)
    session = forms.UUIDField(required=False)

    def wanted(self) -> CallFilter:
        outcome, via, session = self.value("outcome"), self.value("via"), self.value("session")
        return CallFilter(
            key=self.value("key"),
            server=self.value("server"),
            tool=self.value("tool"),
            outcome=CallOutcome(outcome) if outcome else None,
            via=Via(via) if via else None,
            client=self.value("q"),
            session_id=uuid.UUID(session) if session else None,
        )
