"""The form that edits a server: everything that was given. Stored secrets are never written into a page."""

import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from django import forms
from django.core.validators import ProhibitNullCharactersValidator
from django.utils.text import capfirst

from catalog.console.forms import RefusableForm
from catalog.domain import dialects
from catalog.domain.choices import Kind, Transport
from catalog.domain.dialects import ServerEntry
from catalog.domain.dialects.secrets import hide_secrets, show_args
from catalog.domain.errors import InvalidInput
from catalog.domain.limits import ADDRESS_CHARS, COMMAND_CHARS, DESCRIPTION_CHARS
from catalog.forms.servers import COMMAND_FIELDS, folder_field, lines_area, plain_input, timeout_field
from catalog.models import Server

ADDRESS_FIELDS = ("url", "transport", "headers")

_refuse_nul = ProhibitNullCharactersValidator()


class Pair(NamedTuple):
    """A header or variable of a form. `is_set` where its stored value is kept and not shown."""

    name: str
    value: str = ""
    is_set: bool = False


class PairsInput(forms.Widget):
    """Rows of a name and a value, sent as two lists. The page draws them."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[Pair]:
        names, values = data.getlist(f"{name}-name"), data.getlist(f"{name}-value")
        rows = zip_longest(names, values, fillvalue="")
        return [Pair(key.strip(), value) for key, value in rows if key.strip() or value]


class PairsField(forms.Field):
    """Names with values. A name that is left without a value keeps the stored one; one left out goes."""

    widget = PairsInput
    stored: Mapping[str, str] = {}  # as they are shown, by name
    needs_values = True

    def clean(self, value: Any) -> dict[str, str]:
        cleaned: dict[str, str] = {}
        for pair in value:
            _refuse_nul(pair.name + pair.value)
            if not pair.name:
                raise forms.ValidationError("Each value needs a name.")
            if pair.name in cleaned:
                raise forms.ValidationError(f"{pair.name} is given twice.")
            if not pair.value and pair.name not in self.stored and self.needs_values:
                raise forms.ValidationError(f"{pair.name} needs a value.")
            cleaned[pair.name] = pair.value.strip() or self.stored.get(pair.name, "")
        return cleaned


class ServerEditForm(RefusableForm):
    """Everything that was given of a server, without its stored secrets.

    A snapshot has no address. Commands are for admins, addresses and headers for editors too.
    """

    place = re.compile(
        r"\.(command|args|env|cwd|url|headers|timeoutSeconds)(?:\.([\w$-]+)|\[[^\]]*\])?$|^(description)$"
    )

    description = forms.CharField(
        required=False,
        max_length=DESCRIPTION_CHARS,
        help_text="One line about it, for prompts.",
        widget=forms.TextInput({"autocomplete": "off"}),
    )
    kind = forms.ChoiceField(
        choices=[(kind.value, kind.value) for kind in Kind],
        help_text="Part of its tools' names: agents know them by other names after a change.",
    )
    keeps_no_state = forms.BooleanField(
        label="Keeps no state",
        required=False,
        help_text="Keys may then share one connection of the MCP gateway: only where no agent can see what"
        " another did.",
    )
    url = forms.CharField(
        label="Address",
        max_length=ADDRESS_CHARS,
        help_text="A secret in it stands as ${NAME}; left so, it is kept.",
        widget=plain_input("https://mcp.example.com/mcp"),
    )
    transport = forms.ChoiceField(
        choices=[(Transport.HTTP, "Streamable HTTP"), (Transport.SSE, "SSE, the older way")]
    )
    headers = PairsField(
        required=False, help_text="Kept encrypted, for this address alone. Clear a name to remove the header."
    )
    command = forms.CharField(max_length=COMMAND_CHARS, widget=plain_input("npx"))
    args = forms.CharField(
        label="Arguments",
        required=False,
        strip=False,
        help_text="One on each line. A secret stands as ${NAME}; left so, it is kept.",
        widget=lines_area(4, "-y\n@modelcontextprotocol/server-everything"),
    )
    secret_args = forms.MultipleChoiceField(
        label="Hide arguments",
        required=False,
        help_text="What looks like a secret is hidden in any case. The others are shown to everybody here.",
        widget=forms.CheckboxSelectMultiple,
    )
    env = PairsField(
        label="Environment",
        required=False,
        help_text="Kept encrypted, for this command alone. Clear a name to remove the variable.",
    )
    cwd = folder_field()
    timeout_seconds = timeout_field()

    def __init__(
        self, *args: Any, server: Server, entry: ServerEntry | None, is_admin: bool, **kwargs: Any
    ) -> None:
        """`entry` is the stored one, None where its secrets cannot be decrypted."""
        self._hidden = hide_secrets(entry) if entry else None
        super().__init__(*args, initial=_read_initial(server, entry), **kwargs)
        transport = Transport(server.transport)
        for_admins = (*COMMAND_FIELDS, "secret_args") if is_admin else ()
        offered: dict[Transport, tuple[str, ...]] = {Transport.STDIO: for_admins, Transport.SNAPSHOT: ()}
        self.address_fields: tuple[str, ...] = offered.get(transport, ADDRESS_FIELDS)
        if self.address_fields:
            self.address_fields = (*self.address_fields, "timeout_seconds")
        own = {"description", "kind"}
        if is_admin and transport is not Transport.SNAPSHOT:
            own.add("keeps_no_state")
        for name in set(self.fields) - {*own, *self.address_fields}:
            del self.fields[name]
        for name in {"headers", "env"} & set(self.fields):
            field = self.fields[name]
            assert isinstance(field, PairsField)
            field.stored = getattr(self._hidden, name) if self._hidden else {}
            field.needs_values = name == "headers"
        if "secret_args" in self.fields:
            self.fields["args"].widget.attrs["rows"] = min(max(4, len(entry.args) if entry else 0), 12)
            self._offer_arguments(entry)

    def _offer_arguments(self, entry: ServerEntry | None) -> None:
        """The arguments that are shown, and those that an admin has marked."""
        field = self.fields["secret_args"]
        assert isinstance(field, forms.MultipleChoiceField)
        field.widget.attrs["class"] = "form-check-input"
        args, marked = (entry.args, entry.secret_args) if entry else ((), ())
        shown = show_args(args, marked)
        field.choices = [
            (str(position), shown[position])
            for position, arg in enumerate(args)
            if position in marked or shown[position] == arg
        ]

    def given(self, name: str) -> ServerEntry | None:
        """The server with what the form says; None where its address is not in the form."""
        if not self.address_fields:
            return None
        values = self.cleaned_data
        document = {
            "command": values.get("command"),
            "args": list(self._read_args()),
            "env": values.get("env"),
            "cwd": values.get("cwd"),
            "url": values.get("url"),
            "headers": values.get("headers"),
            "timeoutSeconds": values["timeout_seconds"],
            "secretArgs": [int(position) for position in values.get("secret_args", ())],
            "type": values.get("transport"),
        }
        given = {key: value for key, value in document.items() if value}
        (entry,) = dialects.parse_config({"mcpServers": {name: given}}).servers
        return entry

    def _read_args(self) -> Sequence[str]:
        """Arguments that nobody touched stay as they are: one may hold a line break or nothing at all."""
        lines = self.cleaned_data.get("args", "").splitlines()
        if self._hidden and lines == "\n".join(self._hidden.args).splitlines():
            return self._hidden.args
        return [line for line in lines if line]

    def rows_of(self, name: str) -> list[Pair]:
        """The rows to draw: those typed or stored, and an empty one."""
        stored = {pair.name: pair for pair in self.initial.get(name, ())}
        rows = [
            pair._replace(is_set=not pair.value and stored.get(pair.name, pair).is_set)
            for pair in self[name].value() or ()
        ]
        return [*rows, Pair("")]

    def header_rows(self) -> list[Pair]:
        return self.rows_of("headers")

    def variable_rows(self) -> list[Pair]:
        return self.rows_of("env")

    def tell(self, invalid: InvalidInput) -> None:
        for problem in invalid.errors:
            found = self.place.search(problem.place)
            field = (found[1] or found[3]) if found else ""
            field = {"timeoutSeconds": "timeout_seconds"}.get(field, field)
            named = f"{found[2]} {problem.message}" if found and found[2] else capfirst(problem.message)
            self.add_error(field if field in self.fields else None, named)


def _read_initial(server: Server, entry: ServerEntry | None) -> dict[str, Any]:
    initial: dict[str, Any] = {
        "description": server.description,
        "kind": server.kind,
        "keeps_no_state": server.keeps_no_state,
    }
    shown = hide_secrets(entry) if entry else None
    if entry is None or shown is None:
        return {**initial, "url": server.url, "command": server.command, "transport": server.transport}
    return {
        **initial,
        "url": shown.url,
        "transport": entry.transport,
        "headers": _read_pairs(entry.headers, shown.headers),
        "command": entry.command,
        "args": "\n".join(shown.args),
        "env": _read_pairs(entry.env, shown.env),
        "cwd": entry.cwd,
        "timeout_seconds": entry.timeout_seconds,
        "secret_args": [str(position) for position in entry.secret_args],
    }


def _read_pairs(stored: Mapping[str, str], shown: Mapping[str, str]) -> list[Pair]:
    """A reference to a variable is shown, since it is no secret itself."""
    return [
        Pair(name, value) if value == shown[name] else Pair(name, is_set=True)
        for name, value in stored.items()
    ]
