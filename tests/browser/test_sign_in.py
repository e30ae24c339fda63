"""An admin connects a server at a provider of somebody else's make: there and back, by hand, in a browser."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from anyio.from_thread import start_blocking_portal
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextContent
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import TIMEOUT_MS, Watch, sign_in
from tests.harness.instance import START_WITHIN_SECONDS, Instance, running_gateway, wait_for
from tests.harness.oidc_provider import OidcProvider, run_oidc_provider
from tests.harness.prepared import prepared
from tests.harness.protected_server import ProtectedServer, listen

WORKER_WITHIN_MS = 40_000
ACCESS_SECONDS = 5  # so that the walk is longer


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[Instance]:
    with running_gateway(prepared(tmp_path), "--no-demo", TOOLSEARCH_PRIVATE_ADDRESSES="on") as running:
        running.wait_until_healthy()
        yield running


@pytest.fixture
def server() -> Iterator[ProtectedServer]:
    with listen() as listener:
        made = ProtectedServer(listener)
        with made.running():
            yield made


@pytest.fixture
def provider(server: ProtectedServer) -> Iterator[OidcProvider]:
    with run_oidc_provider(server.url, ACCESS_SECONDS) as running:
        server.issuer, server.find_scopes = running.issuer, running.find_scopes
        yield running


@pytest.fixture
def page(instance: Instance, provider: OidcProvider, browser: Browser) -> Iterator[Page]:
    """The admin's, at the console. The provider's own pages may do as they like."""
    context = browser.new_context(base_url=instance.url, viewport={"width": 1440, "height": 900})
    opened = context.new_page()
    opened.set_default_timeout(TIMEOUT_MS)
    expect.set_options(timeout=TIMEOUT_MS)
    opened.route(re.compile("fonts.googleapis.com"), lambda route: route.abort())
    watch = Watch(opened, instance.url)
    opened.goto("/sign-in/")
    sign_in(opened, instance)
    yield opened
    context.close()
    theirs = (provider.issuer, "fonts.googleapis.com", "ERR_FAILED")
    assert [one for one in watch.troubles if not any(part in one for part in theirs)] == []


@pytest.mark.slow
def test_server_is_connected_called_renewed_and_connected_again(
    page: Page, instance: Instance, server: ProtectedServer, provider: OidcProvider
) -> None:
    add_server(page, server)
    connect(page, provider, button="Connect")
    expect(page.get_by_role("link", name="echo", exact=True)).to_be_visible(timeout=WORKER_WITHIN_MS)
    key = make_key(instance)
    assert call_echo(instance, key) == "hello"
    assert server.tokens[-1]

    wait_for(lambda: call_echo(instance, key) == "hello" and provider.count_renewals(), within_seconds=60)
    assert len(set(server.tokens)) > 2

    provider.withdraw()
    assert "needs a sign-in" in call_echo(instance, key)
    page.reload()
    connect(page, provider, button="Reconnect")
    expect(page.locator(".state", has_text="Up to date")).to_be_visible(timeout=WORKER_WITHIN_MS)
    assert call_echo(instance, key) == "hello"


def add_server(page: Page, server: ProtectedServer) -> None:
    """Its first refresh is refused, and its page says why."""
    page.goto("/add-server/")
    page.get_by_label("Name", exact=True).fill("locked")
    page.get_by_label("Address").fill(server.url)
    page.get_by_role("button", name="Add the server").click()
    page.wait_for_url(re.compile("/servers/locked/$"))
    expect(page.get_by_role("alert")).to_contain_text("to use it", timeout=WORKER_WITHIN_MS)


def connect(page: Page, provider: OidcProvider, *, button: str) -> None:
    """There, where somebody signs in once and is asked for consent each time, and back."""
    page.get_by_role("button", name=re.compile(f"^{button}")).click()
    expect(page.get_by_role("heading", name="You will sign in at")).to_contain_text(
        provider.issuer.removeprefix("http://")
    )
    expect(page.locator(".plain-list")).to_contain_text("read")
    page.get_by_role("button", name=re.compile("^Continue")).click()
    page.wait_for_url(f"{provider.issuer}/interaction/**")
    if page.get_by_placeholder("Enter any login").is_visible():
        page.get_by_placeholder("Enter any login").fill("ada")
        page.get_by_placeholder("and password").fill("any")
        page.get_by_role("button", name="Sign-in").click()
    page.get_by_role("button", name="Continue").click()
    page.wait_for_url(re.compile("/servers/locked/$"))
    assert "code=" not in page.url
    expect(page.get_by_role("status").locator("[data-toast]")).to_contain_text("Connected locked")
    expect(page.locator("#sign-in")).to_contain_text("renews itself")


def make_key(instance: Instance) -> str:
    wait_for(instance.is_gateway_alive, within_seconds=START_WITHIN_SECONDS, about=instance)
    return instance.manage("create_key", "agent").stdout.strip()


def call_echo(instance: Instance, key: str) -> str:
    """What an agent gets to read."""

    async def call() -> str:
        url, headers = f"{instance.gateway_url}/mcp", {"Authorization": f"Bearer {key}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            result = await client.call_tool(
                "call_tool", {"name": "mcp__locked__echo", "arguments": {"text": "hello"}}
            )
        return "".join(block.text for block in result.content if isinstance(block, TextContent))

    with start_blocking_portal() as portal:  # Playwright has an event loop in this thread
        return portal.call(call)
