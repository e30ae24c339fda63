"""Parses request bodies as JSON objects that can be stored."""

import json
import re
from typing import Any, NoReturn

from django.http import HttpRequest
from ninja.parser import Parser

_ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


class StrictParser(Parser):
    def parse_body(self, request: HttpRequest) -> Any:
        """Refuses NaN, NUL characters (which no database stores), lone surrogates, and everything but an
        object.
        """
        body = request.body
        parsed = json.loads(body, parse_constant=_refuse)
        if not isinstance(parsed, dict):  # every operation takes one, and a list would pass for an empty one
            raise TypeError("the body must be an object")
        if b"\\u" in body:
            text = json.dumps(parsed, ensure_ascii=False)
            text.encode()
            if _ESCAPED_NUL.search(text):
                raise ValueError("a text has a NUL character")
        return parsed


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
