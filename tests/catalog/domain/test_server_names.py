import re

import pytest

from catalog import urls
from catalog.domain.dialects import parse_config
from catalog.domain.server_names import BELOW_A_SERVER, read_server_number, why_name_refused, write_address
from catalog.domain.snapshots import parse_snapshot
from toolsearch_site.api.mount import api

REFUSED = [
    *(
        "",
        " ",
        "a\nb",
        "a\0b",
        "x" * 101,
        ".",
        "..",
        "/",
        "/a",
        "a/",
        "a//b",
        "a/./b",
        "a/../b",
        "../a",
        "~12",
    ),
    *(f"a/{word}" for word in BELOW_A_SERVER),
]
TAKEN = [
    "github",
    "io.example/notes",
    "a/b/c",
    "refresh",
    "refresh/a",
    "...",
    "a..b",
    "~a",
    "~",
    "%2e%2e",
    "a b",
]


@pytest.mark.parametrize("name", REFUSED)
def test_name_that_cannot_be_addressed_is_refused(name: str) -> None:
    assert why_name_refused(name)


@pytest.mark.parametrize("name", ["..", "a/../b", "x/refresh", "~12"])
def test_name_is_read_from_a_file_since_a_server_may_have_it_from_before(name: str) -> None:
    [entry] = parse_config({"mcpServers": {name: {"url": "https://a.test"}}}).servers
    assert entry.name == name
    assert parse_snapshot(b"[]", server=name) == {name: []}


@pytest.mark.parametrize("name", TAKEN)
def test_other_names_are_taken_and_stand_in_addresses(name: str) -> None:
    assert why_name_refused(name) is None
    assert write_address(name, 7) == name
    assert read_server_number(name) is None


def test_number_stands_for_a_name_that_cannot() -> None:
    assert write_address("a/../b", 7) == "~7"
    assert read_server_number("~7") == 7
    assert read_server_number("~" + "9" * 19) is None


def test_every_word_that_stands_below_a_server_in_an_address_is_no_end_of_a_name() -> None:
    """Else a server named `x/WORD` would hide it, or be hidden."""
    console = [str(route.pattern) for route in urls.urlpatterns]
    rest = list(api.get_openapi_schema(path_prefix="/")["paths"])
    below = [
        re.fullmatch(r"/?servers/(?:<path:name>|\{name\})/(?:.*/)?([^/]+)/?", route)
        for route in console + rest
    ]
    words = {found[1] for found in below if found}
    assert words >= {"refresh", "loading", "delete"}
    assert words <= set(BELOW_A_SERVER)
