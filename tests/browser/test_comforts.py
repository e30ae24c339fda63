"""Features that need JavaScript: themes, parts of pages, shortcuts, live progress."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.test_walk import DARK_PAGE, LIGHT_PAGE, background_of

pytestmark = pytest.mark.slow


def test_theme_is_chosen_at_once_and_kept(open_page: OpenPage) -> None:
    page = open_page(color_scheme="light")
    page.locator("summary", has_text="Your menu").click()
    with page.expect_response("**/theme/"):
        page.get_by_role("button", name="Dark").locator("visible=true").click()
    assert background_of(page) == DARK_PAGE
    page.goto("/tools/")
    assert page.locator("html").get_attribute("data-bs-theme") == "dark"
    assert background_of(page) == DARK_PAGE
    page.locator("summary", has_text="Your menu").click()
    with page.expect_response("**/theme/"):
        page.get_by_role("button", name="System").locator("visible=true").click()
    assert background_of(page) == LIGHT_PAGE
    page.emulate_media(color_scheme="dark")
    assert background_of(page) == DARK_PAGE


def test_tools_are_filtered_in_place_and_the_back_button_works(open_page: OpenPage) -> None:
    page = open_page("/tools/")
    page.evaluate("window.wasNotReloaded = true")
    search = page.get_by_label("Names and descriptions")
    search.press_sequentially("pull request")
    expect(page.get_by_role("link", name="create_invoice")).to_have_count(0)
    expect(page).to_have_url(re.compile(r"q=pull(\+|%20)request"))
    expect(search).to_be_focused()
    page.get_by_label("Server", exact=True).select_option("github")
    expect(page).to_have_url(re.compile(r"server=github"))
    page.get_by_role("link", name="Tool", exact=True).click()
    expect(page).to_have_url(re.compile(r"sort=name"))
    expect(page.locator("th[aria-sort]")).to_have_text("Tool")
    assert page.evaluate("window.wasNotReloaded") is True
    page.go_back()
    expect(page).not_to_have_url(re.compile(r"sort=name"))
    expect(page.locator("th[aria-sort]")).to_have_text("Tokens")
    expect(page.get_by_label("Server", exact=True)).to_have_value("github")
    page.go_forward()
    expect(page.locator("th[aria-sort]")).to_have_text("Tool")


def test_pages_of_a_list_turn_in_place(open_page: OpenPage) -> None:
    page = open_page("/tools/")
    page.evaluate("window.wasNotReloaded = true")
    page.get_by_role("link", name="Next").click()
    expect(page.get_by_text("Page 2 of")).to_be_visible()
    expect(page).to_have_url(re.compile(r"page=2"))
    assert page.evaluate("window.wasNotReloaded") is True
    page.go_back()
    expect(page.get_by_text("Page 1 of")).to_be_visible()


def test_shortcuts(open_page: OpenPage) -> None:
    page = open_page("/tools/")
    page.keyboard.press("/")
    expect(page.get_by_label("Names and descriptions")).to_be_focused()
    page.keyboard.press("Escape")
    page.locator("h1").click()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("g")
    page.keyboard.press("s")
    expect(page.get_by_role("heading", level=1)).to_have_text("Servers")


def test_every_shortcut_that_is_told_leads_to_its_page(open_page: OpenPage) -> None:
    page = open_page()
    page.keyboard.press("?")
    lines = page.get_by_role("dialog", name="Keyboard shortcuts").locator("li", has_text=re.compile(r"g \w$"))
    told = [line.inner_text().split("\n") for line in lines.all()]
    page.keyboard.press("Escape")
    assert len(told) >= 9
    for label, keys in told:
        page.goto("/account/")
        for key in keys.split():
            page.keyboard.press(key)
        expect(page.get_by_role("heading", level=1)).to_have_text(label)


def test_slash_reaches_the_search_of_every_page_that_has_one(open_page: OpenPage) -> None:
    page = open_page()
    for path in ("/servers/", "/tools/", "/console/", "/models/", "/changes/"):
        page.goto(path)
        page.locator("h1").click()
        page.keyboard.press("/")
        expect(page.locator("[data-search]").first).to_be_focused()


def test_paper_gets_the_words_and_not_the_buttons(open_page: OpenPage) -> None:
    page = open_page("/tools/?server=slack", color_scheme="dark")
    page.emulate_media(media="print")
    expect(page.get_by_role("navigation", name="Main", exact=True)).to_be_hidden()
    expect(page.locator("form.filters")).to_be_hidden()
    expect(page.locator("main").get_by_role("button").locator("visible=true")).to_have_count(0)
    expect(page.get_by_role("link", name="post_message", exact=True)).to_be_visible()
    is_cut = (
        "(name) => name.scrollWidth > name.clientWidth + 1 && getComputedStyle(name).overflow === 'hidden'"
    )
    assert not any(name.evaluate(is_cut) for name in page.locator("tbody a.name").all())
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"


def test_changes_are_filtered_in_place_and_the_days_survive_sharing(open_page: OpenPage) -> None:
    page = open_page("/changes/")
    page.evaluate("window.wasNotReloaded = true")
    page.get_by_label("Subject").focus()
    page.get_by_label("Subject").select_option("server")
    expect(page).to_have_url(re.compile(r"subject=server"))
    expect(page.get_by_label("Subject")).to_be_focused()
    page.locator("summary", has_text="Date range").click()
    page.get_by_label("From").fill("2999-01-01")
    page.get_by_label("From").press("Tab")
    expect(page.get_by_role("heading", name="No change matches")).to_be_visible()
    assert page.evaluate("window.wasNotReloaded") is True
    page.goto(page.url)
    expect(page.get_by_role("heading", name="No change matches")).to_be_visible()
    page.get_by_role("link", name="Show all changes").click()
    expect(page.locator("tbody tr").first).to_be_visible()


def test_times_are_relative_and_exact_on_hover(open_page: OpenPage) -> None:
    page = open_page("/changes/")
    time = page.locator("tbody time").first
    expect(time).to_have_text(re.compile(r"just now|ago$"))
    expect(time).to_have_attribute("title", re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$"))


def test_first_tab_skips_to_the_content(open_page: OpenPage) -> None:
    page = open_page()
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


def test_token_map_is_drawn_and_leads_into_a_tool(open_page: OpenPage) -> None:
    page = open_page()
    chart = page.locator("#token-map canvas")
    expect(chart).to_be_visible()
    box = chart.bounding_box()
    assert box is not None
    chart.click(position={"x": 30, "y": 60})
    page.wait_for_url(re.compile(r"/(tools|servers)/.+"))


def test_refresh_shows_its_progress_and_its_result(open_page: OpenPage) -> None:
    page = open_page("/servers/workshop/")
    runs = page.locator("#server-detail tr", has_text="Refreshed")
    before = runs.count()
    page.get_by_role("button", name="Refresh now").click()
    expect(page.get_by_role("button", name="Refresh now")).to_be_disabled()
    expect(page.get_by_role("button", name="Refresh now")).to_be_enabled(timeout=30_000)
    expect(runs).to_have_count(before + 1)


def test_search_answers_while_one_types_and_explains_itself(open_page: OpenPage) -> None:
    page = open_page("/console/")
    page.get_by_label("Query").press_sequentially("create a pull request")
    expect(page.locator(".hits li").first).to_contain_text("create_pull_request")
    expect(page.locator(".why").first).to_contain_text("pull")
    page.get_by_label("Ranker", exact=True).select_option("overlap")
    expect(page).to_have_url(re.compile(r"ranker=overlap"))


def test_settings_of_a_tool_are_saved_and_recorded(open_page: OpenPage) -> None:
    page = open_page("/tools/mcp__github__create_issue/")
    page.get_by_text("Always load", exact=True).click()
    page.get_by_label("Keywords").fill("ticket, bug")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").locator("[data-toast]")).to_contain_text("Saved the settings")
    page.goto("/changes/?subject=tool")
    expect(page.locator("tbody tr").first).to_contain_text("inherit → always")


def test_key_is_shown_once_and_can_be_revoked(open_page: OpenPage) -> None:
    page = open_page("/keys/")
    page.get_by_label("Name").fill("browser-test")
    page.get_by_label("Requests a minute").fill("1,200")
    page.get_by_role("button", name="Create key").click()
    expect(page.locator("#key-text")).to_have_text(re.compile(r"tk_\w{8}_[\w-]{43}"))
    page.get_by_role("link", name="Done").click()
    row = page.locator("tr", has_text="browser-test")
    expect(row).to_contain_text("1,200 requests a minute")
    row.get_by_text("Revoke", exact=True).click()
    row.get_by_role("button", name="Revoke browser-test").click()
    expect(page.locator("tr", has_text="browser-test")).to_contain_text("Revoked")


def test_menus_close_when_one_clicks_elsewhere(open_page: OpenPage) -> None:
    page = open_page()
    page.locator("summary", has_text="Your menu").click()
    expect(page.get_by_role("link", name="Account", exact=True)).to_have_count(1)
    page.locator("h1").click()
    expect(page.get_by_role("link", name="Account", exact=True)).to_have_count(0)
