"""The request class of this site."""

from typing import Any

from django.core.handlers.wsgi import WSGIRequest


class Request(WSGIRequest):
    """Ignores a content type that cannot be parsed; Django would raise before any handler could answer."""

    def _set_content_type_params(self, meta: dict[str, Any]) -> None:
        try:
            super()._set_content_type_params(meta)  # type: ignore[misc]
        except (LookupError, ValueError):  # a charset such as `hex` has a codec, but none for text
            self.content_type, self.content_params, self._encoding = "", {}, None
