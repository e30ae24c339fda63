"""A real instance and a real browser. Any error or warning of the browser fails the test."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Page,
    Request,
    Response,
    StorageState,
    expect,
    sync_playwright,
)

from tests.harness.instance import Instance, running_instance
from tests.harness.prepared import prepared

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# What a browser reports of a request that the reader's next click made needless.
ABORTED = "net::ERR_ABORTED"
# htmx's own words for a request that failed, without the reason: the browser's report of it has one.
TOLD_BY_THE_BROWSER = ("htmx:afterRequest,", "htmx:sendError,", "htmx:sendAbort,")

TIMEOUT_MS = 15_000

OpenPage = Callable[..., Page]


@pytest.fixture(scope="package")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    with running_instance(prepared(tmp_path_factory.mktemp("browser"))) as running:
        running.wait_until_healthy()
        yield running


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield launched
        launched.close()


class Watch:
    """Collects what went wrong on a page: script errors, blocked content, failed or foreign requests."""

    def __init__(self, page: Page, home: str) -> None:
        self.troubles: list[str] = []
        self._home = urlsplit(home).netloc
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.troubles.append(f"script error: {error}"))
        page.on("request", self._on_request)
        page.on("requestfailed", self._on_failure)
        page.on("response", self._on_response)

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not message.text.startswith(TOLD_BY_THE_BROWSER):
            self.troubles.append(f"{message.type}: {message.text}")

    def _on_request(self, request: Request) -> None:
        address = urlsplit(request.url)
        if address.scheme not in ("data", "blob") and address.netloc != self._home:
            self.troubles.append(f"foreign request: {request.url}")

    def _on_failure(self, request: Request) -> None:
        if request.failure != ABORTED:
            self.troubles.append(f"failed request: {request.url} {request.failure}")

    def _on_response(self, response: Response) -> None:
        if response.status >= 400:
            self.troubles.append(f"status {response.status}: {response.url}")


@pytest.fixture(scope="package")
def signed_in_state(instance: Instance, browser: Browser) -> StorageState:
    """The cookies of one sign-in, for every page that does not try the sign-in itself."""
    return keep_sign_in(instance, browser)


def keep_sign_in(instance: Instance, browser: Browser) -> StorageState:
    context = browser.new_context(base_url=instance.url)
    page = context.new_page()
    page.goto("/sign-in/")
    sign_in(page, instance)
    state = context.storage_state()
    context.close()
    return state


@pytest.fixture
def open_page(instance: Instance, browser: Browser, signed_in_state: StorageState) -> Iterator[OpenPage]:
    """Opens an address in a browser of its own, as the admin; at the end none may have had trouble.

    `allowed` are parts of reports that a test expects.
    """
    watches: list[Watch] = []
    contexts = []

    expected: list[str] = []

    def make(
        path: str = "/",
        *,
        width: int = 1440,
        is_signed_in: bool = True,
        allowed: tuple[str, ...] = (),
        **settings: Any,
    ) -> Page:
        expected.extend(allowed)
        context = browser.new_context(
            base_url=instance.url,
            viewport={"width": width, "height": 900},
            storage_state=signed_in_state if is_signed_in else None,
            **settings,
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(TIMEOUT_MS)
        watches.append(Watch(page, instance.url))
        page.goto(path)
        return page

    expect.set_options(timeout=TIMEOUT_MS)
    yield make
    for context in contexts:
        context.close()
    troubles = [trouble for watch in watches for trouble in watch.troubles]
    assert [trouble for trouble in troubles if not any(part in trouble for part in expected)] == []


def enable_demo(page: Page) -> None:
    """On the page of servers, for other tests: the demo has given way to a server of this one."""
    page.get_by_role("button", name="Enable the demo").click()
    expect(page.get_by_role("status").locator("[data-toast]")).to_contain_text("demo servers enabled")


def sign_in(page: Page, instance: Instance) -> None:
    """Fill in the form that is open."""
    page.get_by_label("User name").fill("admin")
    page.get_by_label("Password").fill(instance.password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(instance.url + "/")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)
