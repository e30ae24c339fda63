"""Form fields for whole numbers with thousands separators."""

from typing import Any

from django import forms

from catalog.domain.limits import COUNT


class CountField(forms.IntegerField):
    """A count of 1 or more, or nothing; `empty` says what nothing means."""

    def __init__(self, *, label: str, help_text: str, empty: str) -> None:
        widget = forms.TextInput({"class": "number-box", "inputmode": "numeric", "placeholder": empty})
        super().__init__(
            label=label, help_text=help_text, required=False, min_value=1, max_value=COUNT, widget=widget
        )

    def to_python(self, value: Any) -> int | None:
        return super().to_python(value.replace(",", "") if isinstance(value, str) else value)

    def prepare_value(self, value: Any) -> Any:
        return f"{value:,}" if isinstance(value, int) else value
