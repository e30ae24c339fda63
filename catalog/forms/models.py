"""The form of a model's row. The service validates; the form shows its errors beside the fields."""

from decimal import Decimal
from typing import Any

from django import forms

from catalog.console.forms import RefusableForm
from catalog.console.numbers import CountField
from catalog.domain.limits import MODEL_PRICE_DOLLARS
from catalog.domain.prices import PRICE_DECIMALS
from catalog.models import ModelSupport
from catalog.models.model_support import Provider


class PriceField(forms.DecimalField):
    """A price, or nothing where it is not known."""

    def __init__(self, *, label: str, help_text: str) -> None:
        widget = forms.TextInput({"class": "number-box", "inputmode": "decimal", "placeholder": "not known"})
        super().__init__(
            label=label,
            help_text=help_text,
            required=False,
            min_value=0,
            max_value=MODEL_PRICE_DOLLARS,
            decimal_places=PRICE_DECIMALS,
            widget=widget,
        )

    def prepare_value(self, value: Any) -> Any:
        return f"{value:.6f}".rstrip("0").rstrip(".") if isinstance(value, Decimal) else value


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
    input_price = PriceField(label="Input price", help_text="US dollars per million input tokens.")
    cached_input_price = PriceField(
        label="Cached input price", help_text="US dollars per million input tokens that the prompt cache has."
    )

    @classmethod
    def of(cls, row: ModelSupport) -> "ModelForm":
        return cls(initial={field: getattr(row, field) for field in cls.base_fields})

    def values(self) -> dict[str, Any]:
        """The values for the service."""
        prices = {name: self.cleaned_data[name] for name in ("input_price", "cached_input_price")}
        return {
            **self.cleaned_data,
            "provider": Provider(self.cleaned_data["provider"]),
            **{name: None if price is None else float(price) for name, price in prices.items()},
        }
