"""Filter forms of lists, read from the URL."""

from collections.abc import Iterable

from django import forms

from catalog.console.forms import PageForm

REVERSED = "-"


def both_ways(columns: Iterable[str]) -> list[tuple[str, str]]:
    return [(f"{sign}{column}", column) for column in columns for sign in ("", REVERSED)]


def search_box(label: str) -> forms.TextInput:
    """The search box that the shortcut `/` focuses."""
    attributes = {
        "type": "search",
        "autocomplete": "off",
        "data-search": "",
        "placeholder": label,
        "aria-label": label,
    }
    return forms.TextInput(attributes)


class FilterForm(PageForm):
    """A filter in the URL: a value that cannot be understood is left out, since links live long."""

    def value(self, field: str) -> str:
        self.is_valid()
        return str(self.cleaned_data.get(field) or "")


class SortedForm(FilterForm):
    """A filter with a sort column; a leading `-` reverses the column's order."""

    @property
    def is_reversed(self) -> bool:
        return self.value("sort").startswith(REVERSED)

    def column(self) -> str:
        """The name of the sort column, empty where none is chosen."""
        return self.value("sort").removeprefix(REVERSED)
