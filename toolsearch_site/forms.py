"""Django's account forms in the console's clothes."""

import math
from typing import Any

from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.core.exceptions import ValidationError

from toolsearch_site import guessing


class SignInForm(AuthenticationForm):
    """Looks at a password only while there have not been too many others."""

    wait_seconds = 0

    @property
    def wait_minutes(self) -> int:
        return math.ceil(self.wait_seconds / 60)

    def clean(self) -> dict[str, Any]:
        username = self.cleaned_data.get("username")
        if username is None or self.request is None:
            return super().clean()
        counts = guessing.counts_of(self.request, username)
        self.wait_seconds = guessing.count_attempt(counts)
        if self.wait_seconds:
            raise ValidationError("Too many attempts.", code="too_many")
        cleaned = super().clean()
        guessing.take_back(counts)
        return cleaned


class OwnPasswordForm(PasswordChangeForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs["class"] = "form-control"
            field.widget.attrs.pop("autofocus", None)
