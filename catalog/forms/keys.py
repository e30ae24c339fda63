"""The form that makes a key."""

from datetime import datetime, timedelta

from django import forms

from catalog.console.forms import PageForm
from catalog.console.numbers import CountField
from catalog.domain.policy import DEFAULT_SLUG
from catalog.models import Policy, Scope

LIFETIMES = [("", "Never"), ("30", "In 30 days"), ("90", "In 90 days"), ("365", "In a year")]


class KeyForm(PageForm):
    name = forms.CharField(
        max_length=100,
        help_text="Which agent or script will use it.",
        widget=forms.TextInput({"placeholder": "coding-agent", "autocomplete": "off"}),
    )
    policy = forms.ModelChoiceField(
        queryset=Policy.objects.all(),
        to_field_name="slug",
        empty_label=None,
        initial=DEFAULT_SLUG,
        help_text="Decides what the agent sees, and what is deferred for it.",
    )
    scope = forms.ChoiceField(
        choices=Scope.choices,
        initial=Scope.AGENT,
        help_text="An admin key may change the catalog by REST.",
    )
    lifetime_days = forms.ChoiceField(label="Expires", required=False, choices=LIFETIMES)
    rate_limit_per_minute = CountField(
        label="Requests a minute",
        help_text="Requests beyond it are answered with 429 and a Retry-After header.",
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
