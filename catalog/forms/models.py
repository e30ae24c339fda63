"""A row of the table of models. The service judges the values; the form shows what it says in place."""

from typing import Any

from django import forms
from django.utils.text import capfirst

from catalog.domain.errors import InvalidInput
from catalog.forms.numbers import CountField
from catalog.models import ModelSupport
from catalog.models.model_support import Provider


class ModelForm(forms.Form):
    name_pattern = forms.CharField(
        label="Models",
        max_length=100,
        help_text="A name, or a pattern: claude-opus-4* stands for all that begin so.",
        widget=forms.TextInput(
            {
                "class": "form-control mono",
                "placeholder": "claude-opus-4*",
                "autocomplete": "off",
                "spellcheck": "false",
            }
        ),
    )
    provider = forms.ChoiceField(
        choices=Provider.choices,
        help_text="Whose form of the tool list they take.",
        widget=forms.Select({"class": "form-select"}),
    )
    hosted_search = forms.BooleanField(
        label="Hosted search",
        required=False,
        help_text="The provider searches deferred tools itself.",
        widget=forms.CheckboxInput({"class": "form-check-input"}),
    )
    context_window = CountField(
        label="Context window", help_text="In tokens. Empty leaves it to the policy.", empty="the policy's"
    )

    @classmethod
    def of(cls, row: ModelSupport) -> "ModelForm":
        fields = ("name_pattern", "provider", "hosted_search", "context_window")
        return cls(initial={field: getattr(row, field) for field in fields})

    def values(self) -> dict[str, Any]:
        """As the service takes them."""
        return {**self.cleaned_data, "provider": Provider(self.cleaned_data["provider"])}

    def tell(self, invalid: InvalidInput) -> None:
        for problem in invalid.errors:
            self.add_error(problem.place if problem.place in self.fields else None, capfirst(problem.message))
