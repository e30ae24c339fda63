"""A small internet in memory: names, their addresses, and what is told there.

It takes the place of what is behind the address guard, which looks up and judges as it always does:
`asked` is all that came through.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest

from catalog.domain.addresses import AddressRules
from catalog.upstream.oauth_http import Network

PUBLIC, PRIVATE, LINK_LOCAL = "93.184.215.14", "10.0.0.7", "169.254.169.254"
Page = Callable[["Asked"], httpx2.Response]


@dataclass(frozen=True)
class Asked:
    """A request that was let through, and the address that it went to."""

    method: str
    url: str
    address: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def form(self) -> dict[str, str]:
        return dict(parse_qsl(self.body.decode(), keep_blank_values=True))

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


@dataclass
class Internet(httpx2.AsyncBaseTransport):
    """`pages` are by URL; all else is a 404. Names that are not in `names` are public."""

    pages: dict[str, Page] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)

    def __hash__(self) -> int:
        return id(self)

    @property
    def network(self) -> Network:
        """Under the rules of a service for others: no private addresses."""
        return Network(AddressRules(), self.resolve)

    @property
    def urls(self) -> list[str]:
        return [one.url for one in self.asked]

    @property
    def addresses(self) -> set[str]:
        return {one.address for one in self.asked}

    def resolve(self, host: str, port: int) -> list[str]:
        if host.replace(".", "").isdigit():
            return [host]
        return [self.names.get(host, PUBLIC)]

    def show(self, url: str, value: object, status: int = 200, **headers: str) -> None:
        """A JSON document."""
        self.pages[url] = lambda asked: httpx2.Response(status, json=value, headers=headers)

    def redirect(self, url: str, to: str) -> None:
        self.pages[url] = lambda asked: httpx2.Response(307, headers={"location": to})

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        parts = urlsplit(str(request.url))
        body = b"".join([chunk async for chunk in request.stream])  # type: ignore[union-attr]
        asked = Asked(
            method=request.method,
            url=parts._replace(netloc=headers["host"]).geturl(),
            address=request.url.host,
            headers=headers,
            body=body,
        )
        self.asked.append(asked)
        page = self.pages.get(asked.url)
        return page(asked) if page else httpx2.Response(404)

    async def aclose(self) -> None:
        """It stays for the next conversation."""


def put_behind_the_guard(monkeypatch: pytest.MonkeyPatch) -> Internet:
    made = Internet()
    monkeypatch.setattr(httpx2, "AsyncHTTPTransport", lambda **_: made)
    return made
