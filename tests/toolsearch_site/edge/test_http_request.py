"""Malformed request headers, which Django reads before any code of ours."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import RequestFactory

from toolsearch_site import wsgi
from toolsearch_site.edge import api_dispatch

pytestmark = pytest.mark.django_db


def ask(path: str, **environ: Any) -> tuple[int, str]:
    """With the web server's own request, not the test client's."""
    told: list[str] = []

    def start(status: str, headers: list[tuple[str, str]], *_: object) -> Callable[[bytes], object]:
        told.append(status)
        return bytes

    body = b"".join(wsgi.site({**RequestFactory().get(path).environ, **environ}, start))
    return int(told[0].split()[0]), body.decode()


@pytest.mark.parametrize("name", ["hex", "undefined", "punycode", "zlib", "idna", "rot13"])
def test_charset_of_no_text_is_as_good_as_none(name: str) -> None:
    for content_type in (f"a/b; charset={name}", f"a/b; x*={name}''%41"):
        assert ask("/api/v1/nowhere?q=a", CONTENT_TYPE=content_type)[0] == 404


def test_sign_in_page_too() -> None:
    status, page = ask("/sign-in/?next=%2F", CONTENT_TYPE="a/b; charset=hex")
    assert status == 200
    assert "Sign in" in page


def test_long_addresses_are_not_kept() -> None:
    before = api_dispatch._find_kept_view.cache_info().currsize
    for number in range(3):
        assert ask(f"/api/v1/tools/{'x' * 1_000}{number}")[0] == 401
    assert api_dispatch._find_kept_view.cache_info().currsize == before
