"""The form of a model's row. The service validates; the form shows its errors beside the fields."""

from typing import Any

from django import forms

from catalog.console.forms import RefusableForm
from catalog.console.numbers import CountField
from catalog.models import ModelSupport
from catalog.models.model_support import Provider


class ModelForm(RefusableForm):
    name_pattern = forms.CharField(
        label="Models",
        max_length=100,
        help_text="A name, or a pattern: claude-opus-4* stands for all that begin so.",
        widget=forms.TextInput(
            {
                "class": "mono",
                "placeholder": "claude-opus-4*",
                "autocomplete": "off",
                "spellcheck": "false",
            }
        ),
    )
    provider = forms.ChoiceField(
        choices=Provider.choices,
        help_text="Whose form of the tool list they take.",
    )
    hosted_search = forms.BooleanField(
        label="Hosted search",
        required=False,
        help_text="The provider searches deferred tools itself.",
    )
    context_window = CountField(
        label="Context window", help_text="In tokens. Empty leaves it to the policy.", empty="the policy's"
    )

    @classmethod
    def of(cls, row: ModelSupport) -> "ModelForm":
        fields = ("name_pattern", "provider", "hosted_search", "context_window")
        return cls(initial={field: getattr(row, field) for field in fields})

    def values(self) -> dict[str, Any]:
        """The values for the service."""
        return {**self.cleaned_data, "provider": Provider(self.cleaned_data["provider"])}
