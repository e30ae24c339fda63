"""The filter form of the review."""

from django import forms

from catalog.console.filters import FilterForm
from catalog.selectors.review import ReviewFilter, Waiting

WAITING_WORDS = {
    "": "Everything",
    Waiting.LOCKED: "Locked by quarantine",
    Waiting.CHANGED: "Changed",
    Waiting.NEW: "New",
    Waiting.MARKED: "Flagged",
}


class ReviewFilterForm(FilterForm):
    server = forms.CharField(required=False, max_length=100)
    waiting = forms.ChoiceField(
        required=False,
        choices=list(WAITING_WORDS.items()),
        widget=forms.Select({"aria-label": "Reason"}),
    )

    def wanted(self) -> ReviewFilter:
        waiting = self.value("waiting")
        return ReviewFilter(server=self.value("server"), waiting=Waiting(waiting) if waiting else None)
