"""What the pages of agents take from a reader."""

from datetime import datetime, timedelta

from django import forms

from catalog.domain.choices import Ranker
from catalog.models import Policy
from sessions.models import Scope

LIFETIMES = [("", "Never"), ("30", "In 30 days"), ("90", "In 90 days"), ("365", "In a year")]

LIMITS = [("5", "5 results"), ("10", "10 results"), ("25", "25 results"), ("50", "50 results")]
RANKER_WORDS = {Ranker.BM25F: "bm25f, the default", Ranker.KEYWORD: "keyword", Ranker.OVERLAP: "overlap"}


class ConsoleForm(forms.Form):
    """A search in the URL; a ranker or number that cannot be understood gives way to the default."""

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
    ranker = forms.ChoiceField(
        required=False,
        choices=list(RANKER_WORDS.items()),
        widget=forms.Select({"class": "form-select", "aria-label": "Ranker"}),
    )
    limit = forms.ChoiceField(
        required=False, choices=LIMITS, widget=forms.Select({"class": "form-select", "aria-label": "Results"})
    )

    def asked_query(self) -> str:
        return self._value("q")

    def asked_ranker(self) -> Ranker:
        return Ranker(self._value("ranker") or Ranker.BM25F)

    def asked_limit(self) -> int:
        return int(self._value("limit") or LIMITS[0][0])

    def _value(self, field: str) -> str:
        self.is_valid()
        return str(self.cleaned_data.get(field) or "")


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

    def expires_at(self, *, now: datetime) -> datetime | None:
        days = self.cleaned_data["lifetime_days"]
        return now + timedelta(days=int(days)) if days else None
