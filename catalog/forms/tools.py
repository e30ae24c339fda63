"""What an editor sets on one tool."""

from django import forms

from catalog.domain.choices import Loading
from catalog.models import Tool


class ToolSettingsForm(forms.Form):
    loading = forms.ChoiceField(
        choices=[(Loading.INHERIT, "Inherit"), (Loading.ALWAYS, "Always load"), (Loading.DEFER, "Defer")]
    )
    keywords = forms.CharField(
        required=False,
        help_text="Separated by commas. They help search and are never sent to a model.",
        widget=forms.Textarea({"class": "form-control", "rows": 2}),
    )
    hidden = forms.BooleanField(required=False, widget=forms.CheckboxInput({"class": "form-check-input"}))

    @classmethod
    def of(cls, tool: Tool) -> "ToolSettingsForm":
        return cls(
            initial={"loading": tool.loading, "keywords": ", ".join(tool.keywords), "hidden": tool.hidden}
        )

    def keyword_list(self) -> list[str]:
        return [word.strip() for word in self.cleaned_data["keywords"].split(",") if word.strip()]
