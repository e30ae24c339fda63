"""A wrong header is corrected through the headline's link; switches show what is in force."""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage, enable_demo
from tests.harness.locked_server import TOKEN, running_locked_server

WORKER_WITHIN_MS = 40_000


@pytest.fixture
def locked_address() -> Iterator[str]:
    with running_locked_server() as address:
        yield address


def add_with_wrong_header(page: Page, name: str, address: str) -> None:
    page.goto("/add-server/")
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Address").fill(address)
    page.get_by_label("Headers").fill("Authorization Bearer wrong")
    page.get_by_role("button", name="Add the server").click()
    expect(page.get_by_text("Each line must be a name")).to_be_visible()
    expect(page.get_by_label("Address")).to_have_value(address)
    page.get_by_label("Headers").fill("Authorization: Bearer wrong")
    page.get_by_role("button", name="Test connection").click()
    expect(page.locator("#connection-test")).to_contain_text("refused the token", timeout=WORKER_WITHIN_MS)
    page.get_by_role("button", name="Add the server").click()


@pytest.mark.slow
@pytest.mark.parametrize("width", [1440, 390])
def test_wrong_header_is_corrected_through_the_headline(
    open_page: OpenPage, locked_address: str, width: int
) -> None:
    name = f"locked-{width}"
    # The refused form is told with status 422, which the browser reports: it is on purpose.
    page = open_page("/", width=width, allowed=("status of 422", "status 422"))
    add_with_wrong_header(page, name, locked_address)
    headline = page.get_by_role("link", name=re.compile("refused the token"))
    headline.click(timeout=WORKER_WITHIN_MS)
    box = page.get_by_label("Replace the value of Authorization")
    expect(box).to_be_focused()
    expect(box).to_have_value("")
    assert "wrong" not in page.content()
    test, result = page.get_by_role("button", name="Test connection"), page.locator("#connection-test")
    test.click()
    expect(result).to_contain_text("refused the token", timeout=WORKER_WITHIN_MS)
    box.fill(TOKEN)
    test.click()
    expect(result).to_contain_text("It answers: 2 tools", timeout=WORKER_WITHIN_MS)
    expect(box).to_have_value(TOKEN)
    wide = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    assert not wide, "the page scrolls sideways"
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("link", name="open_door")).to_be_visible(timeout=WORKER_WITHIN_MS)
    expect(page.locator(".state", has_text="Up to date")).to_be_visible()
    page.locator("summary", has_text="Delete").click()
    page.get_by_label(f"Type {name} to delete it").fill(name)
    page.get_by_role("button", name="Delete the server").click()
    enable_demo(page)


def test_look_closes_by_escape_and_outside_and_the_switch_shows_what_is_in_force(open_page: OpenPage) -> None:
    page = open_page("/servers/?sort=name")
    row = page.locator("tbody tr", has_text="calendar")
    in_force = row.locator("input:checked").get_attribute("value")
    ways: list[Callable[[], None]] = [
        lambda: page.keyboard.press("Escape"),
        lambda: page.get_by_role("heading", level=1).click(),
    ]
    for close in ways:
        row.get_by_text("Load", exact=True).click()
        expect(row.locator(".look")).to_contain_text("Set to load?")
        assert row.locator("input:checked").get_attribute("value") == in_force
        close()
        expect(row.locator(".look")).to_have_count(0)


def test_switch_that_failed_goes_back(open_page: OpenPage) -> None:
    page = open_page("/tools/?server=slack", allowed=("ERR_FAILED", "failed request"))
    row = page.locator("tbody tr").first
    before = row.locator("input[type=radio]:checked").get_attribute("value")
    page.route("**/loading/", lambda route: route.abort())
    row.get_by_text("Always", exact=True).click()
    expect(page.get_by_text("The server cannot be reached.")).to_be_visible()
    assert row.locator("input[type=radio]:checked").get_attribute("value") == before
