"""The form of a policy. The engine validates; the form shows its errors beside the fields."""

import re
from collections.abc import Mapping
from typing import Any

from django import forms

from catalog.console.forms import RefusableForm
from catalog.console.spans import write_span
from catalog.domain.choices import Exposure, Mode, PromptStyle, Quarantine, Ranker, RecordCalls
from catalog.domain.policy import DEFAULT_CONTEXT_WINDOW, Policy
from catalog.selectors.policies import GROUPS, UNIT_WORDS, label_of, policy_slugs

ALL, SOME = "all", "some"
MODE_WORDS = {Mode.ALWAYS: "Always", Mode.AUTO: "Auto", Mode.OFF: "Off"}
STYLE_WORDS = {
    PromptStyle.CATEGORIES: "One line per server",
    PromptStyle.NAMES: "The deferred tools' names",
    PromptStyle.NAMES_AND_DESCRIPTIONS: "Names and descriptions",
}
QUARANTINE_WORDS = {
    Quarantine.OFF: "Off",
    Quarantine.CHANGED: "Tools whose definition changed",
    Quarantine.NEW_AND_CHANGED: "New tools, and those whose definition changed",
}
EXPOSURE_WORDS = {
    Exposure.SEARCH: "Search: tools that find and call",
    Exposure.NATIVE: "Native: every visible tool",
}
RECORD_WORDS = {
    RecordCalls.NAMES: "Names, times and sizes",
    RecordCalls.FULL: "Arguments and results as well",
}

GLOB_SYNTAX = (
    "One per line: mcp__github__create_issue, create_issue or github/create_issue;"
    " * stands for any text, ? for one character."
)
# Each field counts only while another has one of these values.
COUNTS_WHEN = {
    "threshold_unit": "mode=auto",
    "threshold": "mode=auto",
    "never_defer": "mode=always,auto",
    "always_defer": "mode=always,auto",
    "defer_builtins": "mode=always,auto",
    "visible": "shown=some",
}


class NumberField(forms.CharField):
    """A number or nothing; invalid text is passed on for the engine to refuse."""

    def __init__(self, empty: str = "the default") -> None:
        attributes = {"class": "number-box", "inputmode": "decimal", "placeholder": empty}
        widget = forms.TextInput(attributes)
        super().__init__(required=False, max_length=40, widget=widget)

    def prepare_value(self, value: object) -> object:
        return f"{value:,}" if isinstance(value, int) else value

    def clean(self, value: object) -> object:
        text = str(super().clean(value)).replace(",", "")
        for read in (int, float):
            try:
                return read(text)
            except (ValueError, OverflowError):
                continue
        return text or None


class GlobsField(forms.CharField):
    """Patterns, one on each line."""

    def __init__(self) -> None:
        attributes = {
            "class": "mono",
            "spellcheck": "false",
            "placeholder": "mcp__github__create_*",
        }
        widget = forms.Textarea({**attributes, "rows": 2})
        super().__init__(required=False, widget=widget)

    def prepare_value(self, value: object) -> object:
        return "\n".join(value) if isinstance(value, list | tuple) else value

    def clean(self, value: object) -> list[str]:
        return [line.strip() for line in str(super().clean(value)).splitlines() if line.strip()]


def choice_field(words: Mapping[Any, str]) -> forms.ChoiceField:
    return forms.ChoiceField(choices=list(words.items()))


def flag_field() -> forms.BooleanField:
    return forms.BooleanField(required=False)


def text_field(max_length: int) -> forms.CharField:
    widget = forms.TextInput({"spellcheck": "false", "autocomplete": "off"})
    return forms.CharField(max_length=max_length, widget=widget)


class PolicyForm(RefusableForm):
    place = re.compile(r"^policy\.(\w+)")

    mode = choice_field(MODE_WORDS)
    threshold_unit = choice_field({unit: words.capitalize() for unit, words in UNIT_WORDS.items()})
    threshold = NumberField("the unit's default")
    context_window = NumberField(f"{DEFAULT_CONTEXT_WINDOW:,}")
    never_defer = GlobsField()
    always_defer = GlobsField()
    defer_builtins = flag_field()
    shown = choice_field({ALL: "Every tool", SOME: "Only tools that match:"})
    visible = GlobsField()
    ranker = choice_field({ranker: str(ranker) for ranker in Ranker})
    max_results = NumberField()
    score_cutoff = NumberField()
    meaning_floor = NumberField()
    search_tool_name = text_field(64)
    keep_loaded_tools = flag_field()
    keep_on_compaction = flag_field()
    max_loaded_tools = NumberField("no limit")
    unload_after_idle_turns = NumberField("never")
    prompt_style = choice_field(STYLE_WORDS)
    prompt_budget_tokens = NumberField()
    exposure = choice_field(EXPOSURE_WORDS)
    call_timeout_seconds = NumberField()
    max_result_tokens = NumberField()
    record_calls = choice_field(RECORD_WORDS)
    quarantine = choice_field(QUARANTINE_WORDS)
    max_sessions = NumberField()
    session_ttl = text_field(40)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for _, fields in GROUPS:
            for name, explanation in fields:
                self.fields[name].label, self.fields[name].help_text = label_of(name), explanation
        self.fields["shown"].label = "Visible tools"
        self.fields["shown"].help_text = "Other tools are never listed, counted or found."
        self.fields["visible"].label = "Visible patterns"
        for name, field in self.fields.items():
            if isinstance(field, GlobsField):
                field.help_text = f"{field.help_text} {GLOB_SYNTAX}"
            if name in COUNTS_WHEN:
                field.widget.attrs["data-counts-when"] = COUNTS_WHEN[name]

    @classmethod
    def of(cls, policy: Policy) -> "PolicyForm":
        values = policy.to_mapping()
        shown = ALL if policy.visible is None else SOME
        return cls(
            initial={
                **values,
                "shown": shown,
                "session_ttl": write_span(int(policy.session_ttl.total_seconds())),
            }
        )

    def proposal(self) -> dict[str, object]:
        """The fields for the engine; an empty number is the default, or no limit."""
        values = dict(self.cleaned_data)
        if values.pop("shown") == ALL:
            values["visible"] = None
        return values

    def groups(self) -> list[tuple[str, list[forms.BoundField]]]:
        """The fields under their headings; a choice comes before the patterns that it enables."""
        named = [(heading, [name for name, _ in fields]) for heading, fields in GROUPS]
        return [(heading, [self[name] for name in _with_shown(names)]) for heading, names in named]


class NewPolicyForm(RefusableForm):
    blamed = "slug"

    slug = forms.CharField(
        label="Name",
        max_length=64,
        help_text="Letters, digits, - and _. Agents know the policy by it, so it stays.",
        widget=forms.TextInput({"autocomplete": "off", "spellcheck": "false"}),
    )
    source = forms.ChoiceField(
        label="Start as a copy of",
        help_text="The editor opens next; nothing uses the policy until a key does.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        source = self.fields["source"]
        assert isinstance(source, forms.ChoiceField)
        source.choices = [(slug, slug) for slug in policy_slugs()]


def _with_shown(names: list[str]) -> list[str]:
    return [each for name in names for each in (("shown", name) if name == "visible" else (name,))]
