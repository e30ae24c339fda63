"""The form of a tool's settings."""

from collections.abc import Sequence

from django import forms

from catalog.console.forms import RefusableForm
from catalog.domain.choices import Loading, ReadOnly
from catalog.models import Tool

LOADING_WORDS = {Loading.INHERIT: "Inherit", Loading.ALWAYS: "Always load", Loading.DEFER: "Defer"}
READ_ONLY_WORDS = {
    ReadOnly.INHERIT: "As defined",
    ReadOnly.YES: "Read-only",
    ReadOnly.NO: "Changes things",
}


class ToolSettingsForm(RefusableForm):
    loading = forms.ChoiceField(choices=list(LOADING_WORDS.items()))
    keywords = forms.CharField(
        required=False,
        help_text="Separated by commas. They help search and are never sent to a model.",
        widget=forms.Textarea({"rows": 2}),
    )
    tags = forms.CharField(
        required=False,
        max_length=1000,
        help_text="Separated by commas. For filtering here; agents never see them.",
        widget=forms.TextInput({"autocomplete": "off"}),
    )
    hidden = forms.BooleanField(required=False)
    # Left out by who may not change it, and by scripts: then it stays.
    read_only = forms.ChoiceField(required=False, choices=list(READ_ONLY_WORDS.items()))

    @classmethod
    def of(cls, tool: Tool, tags: Sequence[str]) -> "ToolSettingsForm":
        values = {"loading": tool.loading, "hidden": tool.hidden, "read_only": ReadOnly.of(tool.read_only)}
        return cls(initial={**values, "keywords": ", ".join(tool.keywords), "tags": ", ".join(tags)})

    def read_only_mark(self) -> ReadOnly | None:
        """None where the form was sent without it."""
        given = self.cleaned_data["read_only"]
        return ReadOnly(given) if given else None

    def words(self, field: str) -> list[str]:
        """The words between the commas."""
        return [word.strip() for word in self.cleaned_data[field].split(",") if word.strip()]
