"""Forms that add servers, and the fields that they share with the form that edits one.

What somebody has just typed comes back to them in the answer to the same request, which no cache keeps, so
that a mistake in one field does not cost the others.
"""

import re
from datetime import timedelta
from typing import Any

from django import forms
from django.utils.text import capfirst

from catalog.console.forms import PageForm, RefusableForm
from catalog.domain.choices import Transport
from catalog.domain.limits import COMMAND_CHARS, SERVER_TIMEOUT_SECONDS
from catalog.domain.policy import DEFAULT_SLUG
from catalog.domain.values import BadValueError, read_duration
from catalog.selectors.policies import policy_slugs

DEFER_WORDS = {"inherit": "Inherit", "load": "Load", "defer": "Defer"}
PASTED_CHARS = 900_000  # what fits into a request
DEFER_VALUES: dict[str, bool | None] = {"inherit": None, "load": False, "defer": True}
COMMAND_FIELDS = ("command", "args", "env", "cwd")


def lines_area(rows: int, placeholder: str) -> forms.Textarea:
    attributes = {"class": "mono", "spellcheck": "false", "autocomplete": "off"}
    return forms.Textarea({**attributes, "rows": rows, "placeholder": placeholder})


def plain_input(placeholder: str) -> forms.TextInput:
    attributes = {"class": "mono", "spellcheck": "false", "autocomplete": "off"}
    return forms.TextInput({**attributes, "placeholder": placeholder})


class PasteForm(PageForm):
    """A config as text or as a file, or sealed, as a plan of before has kept it."""

    config = forms.CharField(required=False, max_length=PASTED_CHARS, strip=False)
    file = forms.FileField(required=False, max_length=255)
    sealed = forms.CharField(required=False, max_length=PASTED_CHARS)
    policy = forms.ChoiceField(label="Search settings go to the policy")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        policy = self.fields["policy"]
        assert isinstance(policy, forms.ChoiceField)
        policy.choices = [(slug, slug) for slug in policy_slugs()]
        policy.initial = DEFAULT_SLUG

    def content(self) -> str | bytes:
        """What was pasted, else what the file holds; empty where neither was given."""
        file = self.cleaned_data["file"]
        pasted = str(self.cleaned_data["config"])
        return pasted if pasted.strip() or file is None else bytes(file.read())


def folder_field() -> forms.CharField:
    return forms.CharField(
        label="Folder",
        required=False,
        max_length=COMMAND_CHARS,
        help_text="Where the program runs. The worker's own folder where none is given.",
        widget=plain_input("/srv/files"),
    )


def timeout_field() -> forms.IntegerField:
    return forms.IntegerField(
        label="Timeout, in seconds",
        required=False,
        min_value=1,
        max_value=SERVER_TIMEOUT_SECONDS,
        help_text="To connect, and to list its tools. The instance's own where none is given.",
    )


class ServerForm(RefusableForm):
    """One server. Commands run on our machine, so only admins are asked for one."""

    place = re.compile(r"\.(command|args|env|cwd|url|headers)\b")

    name = forms.CharField(max_length=100)
    url = forms.CharField(
        label="Address",
        required=False,
        max_length=2000,
        widget=plain_input("https://mcp.example.com/mcp"),
    )
    transport = forms.ChoiceField(
        required=False,
        choices=[(Transport.HTTP, "Streamable HTTP"), (Transport.SSE, "SSE, the older way")],
    )
    headers = forms.CharField(
        required=False,
        help_text="One on each line. Kept encrypted.",
        widget=lines_area(2, "Authorization: Bearer …"),
    )
    command = forms.CharField(
        required=False,
        max_length=1000,
        help_text="Instead of an address: a program that the worker starts.",
        widget=plain_input("npx"),
    )
    args = forms.CharField(
        label="Arguments",
        required=False,
        help_text="One on each line.",
        widget=lines_area(2, "-y\n@modelcontextprotocol/server-everything"),
    )
    env = forms.CharField(
        label="Environment",
        required=False,
        help_text="One on each line. Kept encrypted.",
        widget=lines_area(2, "API_KEY=…"),
    )
    cwd = folder_field()
    timeout_seconds = timeout_field()
    defer = forms.ChoiceField(label="Loading", choices=list(DEFER_WORDS.items()))

    def __init__(self, *args: Any, may_run_commands: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not may_run_commands:
            for name in COMMAND_FIELDS:
                del self.fields[name]

    def clean_headers(self) -> dict[str, str]:
        return self._pairs("headers", ":")

    def clean_env(self) -> dict[str, str]:
        return self._pairs("env", "=")

    def document(self) -> dict[str, object]:
        """The server as a config document."""
        given = self.cleaned_data
        entry = {
            "command": given.get("command"),
            "args": [line for line in given.get("args", "").splitlines() if line],
            "env": given.get("env"),
            "url": given["url"],
            "headers": given["headers"],
            "cwd": given.get("cwd"),
            "timeoutSeconds": given["timeout_seconds"],
            "type": given["transport"] if given["url"] else None,
            "deferLoading": DEFER_VALUES[given["defer"]],
        }
        kept = {key: value for key, value in entry.items() if value or value is False}
        return {"mcpServers": {given["name"]: kept}}

    def _pairs(self, field: str, sign: str) -> dict[str, str]:
        lines = [line for line in self.cleaned_data[field].splitlines() if line.strip()]
        pairs = [line.partition(sign) for line in lines]
        if not all(name.strip() and found for name, found, _ in pairs):
            raise forms.ValidationError(f"Each line must be a name, a “{sign}” and a value.")
        return {name.strip(): value.strip() for name, _, value in pairs}


class IntervalForm(RefusableForm):
    blamed = "interval"

    interval = forms.CharField(
        label="Refresh every",
        max_length=40,
        help_text="Such as 10 minutes, 1 hour or 2 days.",
        widget=forms.TextInput({"autocomplete": "off"}),
    )

    def clean_interval(self) -> timedelta:
        try:
            return read_duration(self.cleaned_data["interval"])
        except BadValueError as error:
            raise forms.ValidationError(capfirst(str(error))) from None
