"""The base of the console's forms: how their widgets look, and where they show what the engine refuses."""

import re
from typing import Any, ClassVar

from django import forms
from django.utils.text import capfirst

from catalog.domain.errors import InvalidInput


class PageForm(forms.Form):
    """Gives each widget its class, beside those that the field names itself."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        dress(self)


class RefusableForm(PageForm):
    """A form whose values the engine judges: each complaint is shown beside its field.

    `place` finds a field's name in the place that a complaint is about; with `blamed` all go to one field.
    """

    place: ClassVar[re.Pattern[str]] = re.compile(r"^(\w+)$")
    blamed: ClassVar[str | None] = None

    def tell(self, invalid: InvalidInput) -> None:
        for problem in invalid.errors:
            found = self.place.search(problem.place)
            named = found[1] if found and found[1] in self.fields else None
            self.add_error(self.blamed or named, capfirst(problem.message))


def dress(form: forms.BaseForm) -> None:
    """Put the style sheet's class for its kind on every widget."""
    for field in form.fields.values():
        own = field.widget.attrs.get("class", "")
        field.widget.attrs["class"] = f"{_class_of(field.widget)} {own}".strip()


def _class_of(widget: forms.Widget) -> str:
    if isinstance(widget, forms.CheckboxInput):
        return "form-check-input"
    return "form-select" if isinstance(widget, forms.Select) else "form-control"
