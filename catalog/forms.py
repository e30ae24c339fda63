"""What the catalog's pages take from a reader."""

from django import forms

from catalog.domain.choices import Loading
from catalog.models import Tool
from catalog.models.changes import Action, Subject
from catalog.models.tools import State
from catalog.selectors.changes import ChangeFilter
from catalog.selectors.servers import ServerSort
from catalog.selectors.tools import ToolFilter, ToolSort

ANY_STATE = "any"
SELECT = {"class": "form-select"}


def search_box(label: str) -> forms.TextInput:
    """The box that `/` jumps to."""
    attributes = {
        "class": "form-control",
        "type": "search",
        "autocomplete": "off",
        "data-search": "",
        "placeholder": label,
        "aria-label": label,
    }
    return forms.TextInput(attributes)


class FilterForm(forms.Form):
    """A filter in the URL: a value that cannot be understood is left out, since links live long."""

    def value(self, field: str) -> str:
        self.is_valid()
        return str(self.cleaned_data.get(field) or "")


class ServerFilterForm(FilterForm):
    q = forms.CharField(required=False, widget=search_box("Find a server"))
    sort = forms.ChoiceField(required=False, choices=[(sort, sort) for sort in ServerSort])

    def sort_order(self) -> ServerSort:
        return ServerSort(self.value("sort") or ServerSort.SIZE)


class ToolFilterForm(FilterForm):
    q = forms.CharField(required=False, max_length=200, widget=search_box("Names and descriptions"))
    server = forms.CharField(required=False, max_length=100)
    loading = forms.ChoiceField(
        required=False,
        choices=[
            ("", "Any loading"),
            (Loading.INHERIT, "Inherit"),
            (Loading.ALWAYS, "Always load"),
            (Loading.DEFER, "Defer"),
        ],
        widget=forms.Select({**SELECT, "aria-label": "Loading"}),
    )
    state = forms.ChoiceField(
        required=False,
        choices=[("", "Active"), (State.HIDDEN, "Hidden"), (State.GONE, "Gone"), (ANY_STATE, "Any state")],
        widget=forms.Select({**SELECT, "aria-label": "State"}),
    )
    sort = forms.ChoiceField(required=False, choices=[(sort, sort) for sort in ToolSort])

    def wanted(self) -> ToolFilter:
        loading, state = self.value("loading"), self.value("state")
        return ToolFilter(
            text=self.value("q"),
            server=self.value("server"),
            loading=Loading(loading) if loading else None,
            state=None if state == ANY_STATE else State(state or State.ACTIVE),
            sort=ToolSort(self.value("sort") or ToolSort.SIZE),
        )


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


class ChangeFilterForm(FilterForm):
    q = forms.CharField(required=False, widget=search_box("Name of what changed"))
    actor = forms.CharField(required=False)
    subject = forms.ChoiceField(
        required=False,
        choices=[("", "Any subject"), *Subject.choices],
        widget=forms.Select({**SELECT, "aria-label": "Subject"}),
    )
    action = forms.ChoiceField(
        required=False,
        choices=[("", "Any action"), *Action.choices],
        widget=forms.Select({**SELECT, "aria-label": "Action"}),
    )

    def wanted(self) -> ChangeFilter:
        subject, action = self.value("subject"), self.value("action")
        return ChangeFilter(
            name=self.value("q"),
            actor=self.value("actor"),
            subject=Subject(subject) if subject else None,
            action=Action(action) if action else None,
        )
