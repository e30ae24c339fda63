"""The form for a client id of one's own, by which people or this program sign in to a server."""

import re
from typing import Any

from django import forms

from catalog.console.forms import RefusableForm
from catalog.domain.choices import AuthKind
from catalog.domain.limits import OAUTH_SCOPE_CHARS, OAUTH_SCOPES, OAUTH_TOKEN_CHARS, OAUTH_URL_CHARS
from catalog.forms.servers import plain_input
from catalog.selectors.server_auth import ServerAuth
from catalog.services.oauth_clients import ClientSettings

KINDS = (
    (AuthKind.OAUTH, "A person signs in"),
    (AuthKind.CLIENT_CREDENTIALS, "This program itself, by its secret"),
)


class UnshownArea(forms.Textarea):
    """Takes a secret, and never gives it back to a page."""

    def format_value(self, value: object) -> str:
        return ""


class ClientForm(RefusableForm):
    place = re.compile(r"^auth\.(\w+)$")

    kind = forms.ChoiceField(label="Who signs in", choices=KINDS)
    issuer = forms.CharField(
        max_length=OAUTH_URL_CHARS,
        help_text="The address of the sign-in server that the client is for, as that server writes it.",
        widget=plain_input("https://github.com/login/oauth"),
    )
    client_id = forms.CharField(label="Client id", max_length=OAUTH_TOKEN_CHARS, widget=plain_input(""))
    client_secret = forms.CharField(
        label="Client secret",
        required=False,
        max_length=OAUTH_TOKEN_CHARS,
        widget=UnshownArea({"class": "mono", "rows": 2, "spellcheck": "false", "autocomplete": "off"}),
    )
    scopes = forms.CharField(
        required=False,
        max_length=OAUTH_SCOPES * (OAUTH_SCOPE_CHARS + 1),
        help_text="With spaces between. Those that the server asks for, where none are given.",
        widget=plain_input("read write"),
    )
    pkce_unlisted = forms.BooleanField(
        label="The sign-in server takes PKCE although it does not say so",
        required=False,
        help_text="Only where its maker says that it does: without PKCE a sign-in can be stolen on its way.",
    )

    def __init__(self, *args: Any, auth: ServerAuth, **kwargs: Any) -> None:
        """`auth` is what is stored of the client."""
        super().__init__(*args, initial=_read_initial(auth), auto_id="client-%s", **kwargs)
        secret = self.fields["client_secret"]
        kept = "It is set; leave this empty to keep it. " if auth.has_secret else ""
        secret.help_text = f"{kept}Kept encrypted and never shown. A private key in PEM form serves as well."
        if auth.has_secret:
            secret.widget.attrs["placeholder"] = "set · replace"

    def wanted(self) -> ClientSettings:
        values = self.cleaned_data
        return ClientSettings(
            kind=AuthKind(values["kind"]),
            issuer=values["issuer"],
            client_id=values["client_id"],
            client_secret=values["client_secret"].replace("\r\n", "\n") or None,
            scopes=tuple(values["scopes"].split()),
            pkce_unlisted=values["pkce_unlisted"],
        )


def _read_initial(auth: ServerAuth) -> dict[str, Any]:
    if not auth.has_own_client:
        return {"issuer": auth.issuer}
    return {
        "kind": auth.kind.value,
        "issuer": auth.issuer,
        "client_id": auth.client_id,
        "scopes": " ".join(auth.client_scopes),
        "pkce_unlisted": auth.pkce_unlisted,
    }
