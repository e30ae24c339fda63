"""Django's account forms in the console's clothes."""

from typing import Any

from django.contrib.auth.forms import PasswordChangeForm


class OwnPasswordForm(PasswordChangeForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs["class"] = "form-control"
            field.widget.attrs.pop("autofocus", None)
