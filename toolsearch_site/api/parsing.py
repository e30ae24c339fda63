"""The request parser of the API's operations."""

from typing import Any

from django.http import HttpRequest
from ninja.parser import Parser

from catalog.request_bodies import parse_object


class StrictParser(Parser):
    def parse_body(self, request: HttpRequest) -> Any:
        return parse_object(request.body)
