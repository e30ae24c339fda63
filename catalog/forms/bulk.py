"""The form that changes many tools."""

from typing import Any

from django import forms

from catalog.console.forms import RefusableForm
from catalog.domain.choices import Loading, ReadOnly
from catalog.forms.tools import LOADING_WORDS, READ_ONLY_WORDS
from catalog.services.bulk import BulkEdit

KEEP = ""
SHOWN, HIDDEN = "shown", "hidden"
TEXT = {"autocomplete": "off"}


class BulkForm(RefusableForm):
    blamed = "add_tags"

    loading = forms.ChoiceField(
        required=False,
        choices=[(KEEP, "No change"), *LOADING_WORDS.items()],
    )
    visibility = forms.ChoiceField(
        required=False,
        choices=[(KEEP, "No change"), (HIDDEN, "Hide"), (SHOWN, "Show")],
        help_text="A hidden tool is never listed, counted or found.",
    )
    add_tags = forms.CharField(
        label="Add tags",
        required=False,
        max_length=1000,
        help_text="Separated by commas. For filtering here; agents never see them.",
        widget=forms.TextInput(TEXT),
    )
    remove_tags = forms.CharField(
        label="Remove tags", required=False, max_length=1000, widget=forms.TextInput(TEXT)
    )

    read_only = forms.ChoiceField(
        label="Read-only",
        required=False,
        choices=[(KEEP, "No change"), *READ_ONLY_WORDS.items()],
        help_text="MCP clients may be told to call read-only tools without asking.",
    )

    def __init__(self, *args: Any, may_mark: bool, **kwargs: Any) -> None:
        """`may_mark` where the reader may say that tools are read-only."""
        super().__init__(*args, **kwargs)
        if not may_mark:
            del self.fields["read_only"]

    def edit(self) -> BulkEdit:
        given = self.cleaned_data
        mark = given.get("read_only")
        return BulkEdit(
            loading=Loading(given["loading"]) if given["loading"] else None,
            hidden=given["visibility"] == HIDDEN if given["visibility"] else None,
            add_tags=tuple(given["add_tags"].split(",")) if given["add_tags"] else (),
            remove_tags=tuple(given["remove_tags"].split(",")) if given["remove_tags"] else (),
            read_only=ReadOnly(mark) if mark else None,
        )
