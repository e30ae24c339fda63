"""Every address of the product, from the URL map itself, with real things in place of its parameters."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from django.urls import URLPattern, URLResolver, get_resolver

API_ROOT = "/api/v1/"
ADMIN_ROOT = "/admin/"
_PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>|\(\?P<(\w+)>[^)]*\)")


@dataclass(frozen=True)
class Address:
    """`name` is the URL's; the admin site and the API use theirs again for several routes."""

    route: str
    name: str

    @property
    def parameters(self) -> set[str]:
        return {first or second for first, second in _PARAMETER.findall(self.route)}

    def fill(self, values: Mapping[str, object]) -> str:
        """The path with these values. A parameter without one must be added where the test makes its rows."""
        missing = self.parameters - values.keys()
        assert not missing, (
            f"{self.route} names {', '.join(missing)}: make a real one, in `make_things` of"
            " test_page_access.py, `world` of test_api_access.py and `fill` of hostile_catalog.py"
        )
        path = _PARAMETER.sub(lambda found: str(values[found[1] or found[2]]), self.route)
        return path.replace("^", "").replace("$", "")


def all_addresses() -> list[Address]:
    return list(_walk(get_resolver().url_patterns, "/"))


def console_addresses() -> list[Address]:
    return [one for one in all_addresses() if not one.route.startswith((API_ROOT, ADMIN_ROOT))]


def admin_addresses() -> list[Address]:
    return [one for one in all_addresses() if one.route.startswith(ADMIN_ROOT)]


def api_addresses() -> list[Address]:
    return [one for one in all_addresses() if one.route.startswith(API_ROOT)]


def _walk(patterns: list[URLPattern | URLResolver], prefix: str) -> Iterator[Address]:
    for pattern in patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _walk(pattern.url_patterns, route)
        else:
            yield Address(route, pattern.name or "")
