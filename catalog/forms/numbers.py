"""Whole numbers as the console writes them: grouped, and empty where there is none."""

from typing import Any

from django import forms

LARGEST = 2**31 - 1


class CountField(forms.IntegerField):
    """A count of 1 or more, or nothing; `empty` says what nothing means."""

    def __init__(self, *, label: str, help_text: str, empty: str) -> None:
        widget = forms.TextInput(
            {"class": "form-control number-box", "inputmode": "numeric", "placeholder": empty}
        )
        super().__init__(
            label=label, help_text=help_text, required=False, min_value=1, max_value=LARGEST, widget=widget
        )

    def to_python(self, value: Any) -> int | None:
        return super().to_python(value.replace(",", "") if isinstance(value, str) else value)

    def prepare_value(self, value: Any) -> Any:
        return f"{value:,}" if isinstance(value, int) else value
