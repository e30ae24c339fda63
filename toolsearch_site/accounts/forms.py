"""Django's account forms with the console's styles."""

import math
from typing import Any

from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.core.exceptions import ValidationError

from catalog.console.forms import dress
from toolsearch_site.accounts import login_throttle


class SignInForm(AuthenticationForm):
    """Checks the login throttle before it checks the password."""

    wait_seconds = 0

    @property
    def wait_minutes(self) -> int:
        return math.ceil(self.wait_seconds / 60)

    def clean(self) -> dict[str, Any]:
        username = self.cleaned_data.get("username")
        if username is None or self.request is None:
            return super().clean()
        counts = login_throttle.counters_of(self.request, username)
        self.wait_seconds = login_throttle.count_attempt(counts)
        if self.wait_seconds:
            raise ValidationError("Too many attempts.", code="too_many")
        cleaned = super().clean()
        login_throttle.clear_attempts(counts)
        return cleaned


class OwnPasswordForm(PasswordChangeForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs.pop("autofocus", None)
        dress(self)
