"""Signing in and walking through every page, in both themes, wide and narrow, with and without JavaScript."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage, sign_in
from tests.harness.instance import Instance

ENTRIES = [
    "Overview",
    "Servers",
    "Tools",
    "Review",
    "Policies",
    "Sessions",
    "Connect an agent",
    "Test console",
    "Models",
    "Keys",
    "Changes",
]
LIGHT_PAGE, DARK_PAGE = "rgb(246, 247, 249)", "rgb(13, 16, 21)"


def background_of(page: Page) -> str:
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


def overflow_of(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


@pytest.mark.parametrize(("scheme", "background"), [("light", LIGHT_PAGE), ("dark", DARK_PAGE)])
def test_menu_leads_through_all_pages(open_page: OpenPage, scheme: str, background: str) -> None:
    page = open_page(color_scheme=scheme)
    for entry in ENTRIES:
        page.get_by_role("navigation", name="Main", exact=True).get_by_role("link", name=entry).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(entry)
        expect(page.locator('.side [aria-current="page"]')).to_have_text(entry)
        assert background_of(page) == background
        assert overflow_of(page) == 0


def test_details_open_from_the_lists(open_page: OpenPage) -> None:
    page = open_page("/servers/")
    page.get_by_role("link", name="github").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("github")
    page.get_by_role("link", name="create_pull_request", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("create_pull_request")
    page.get_by_text("As JSON").first.click()
    expect(page.locator("#schema-json")).to_contain_text('"properties"')
    page.goto("/policies/default/")
    expect(page.get_by_text("search_tools")).to_be_visible()


def test_narrow_screen_has_the_menu_and_no_sideways_scrolling(open_page: OpenPage) -> None:
    page = open_page(width=390)
    for entry in ENTRIES:
        page.get_by_label("Menu", exact=True).click()
        page.get_by_role("navigation", name="Main, narrow").get_by_role("link", name=entry).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(entry)
        assert overflow_of(page) == 0


def test_everything_can_be_read_and_filtered_without_javascript(
    open_page: OpenPage, instance: Instance
) -> None:
    page = open_page("/sign-in/", width=390, java_script_enabled=False, is_signed_in=False)
    sign_in(page, instance)
    for entry in ENTRIES:
        page.get_by_label("Menu", exact=True).click()
        page.get_by_role("navigation", name="Main, narrow").get_by_role("link", name=entry).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(entry)
    page.goto("/tools/")
    page.get_by_label("Names and descriptions").fill("pull request")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_role("link", name="create_pull_request", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="create_invoice")).to_have_count(0)
    page.get_by_label("Menu", exact=True).click()
    page.get_by_role("button", name="Dark").locator("visible=true").click()
    assert page.locator("html").get_attribute("data-bs-theme") == "dark"
    assert "q=pull+request" in page.url


def test_wrong_password_is_told(open_page: OpenPage) -> None:
    page = open_page("/tools/", is_signed_in=False)
    page.get_by_label("User name").fill("admin")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("do not match an account")


def test_sign_in_leads_back_and_sign_out_ends_it(open_page: OpenPage, instance: Instance) -> None:
    page = open_page("/tools/?q=issue", is_signed_in=False)
    page.get_by_label("User name").fill("admin")
    page.get_by_label("Password").fill(instance.password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/tools/?q=issue")
    page.locator("summary", has_text="Your menu").click()
    page.get_by_role("button", name="Sign out").locator("visible=true").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
