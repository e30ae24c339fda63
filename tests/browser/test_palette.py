"""The command palette by keyboard alone, and on a phone."""

import re

from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import OpenPage
from tests.browser.test_accessibility import find_problems


def palette(page: Page) -> Locator:
    return page.get_by_role("dialog", name="Go to anything")


def field(page: Page) -> Locator:
    return palette(page).get_by_role("combobox")


def chosen(page: Page) -> Locator:
    return palette(page).get_by_role("option", selected=True)


def test_jumps_to_a_tool_by_keyboard_alone(open_page: OpenPage) -> None:
    page = open_page("/changes/")
    page.keyboard.press("Control+k")
    expect(field(page)).to_be_focused()
    expect(chosen(page)).to_have_count(1)
    page.keyboard.type("create_pull_request")
    expect(chosen(page)).to_contain_text("create_pull_request")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("create_pull_request")


def test_arrow_keys_move_and_the_field_says_where(open_page: OpenPage) -> None:
    page = open_page()
    page.keyboard.press("Control+k")
    options = palette(page).get_by_role("option")
    expect(options.first).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowDown")
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    expect(options.first).to_have_attribute("aria-selected", "false")
    assert field(page).get_attribute("aria-activedescendant") == options.nth(1).get_attribute("id")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    expect(options.last).to_have_attribute("aria-selected", "true")


def test_escape_gives_the_focus_back(open_page: OpenPage) -> None:
    page = open_page("/tools/")
    search = page.get_by_label("Names and descriptions")
    search.focus()
    page.keyboard.press("Control+k")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate(
        "document.activeElement === document.body || document.activeElement.closest('dialog') !== null"
    )
    page.keyboard.press("Escape")
    expect(palette(page)).to_have_count(0)
    expect(search).to_be_focused()


def test_enter_before_the_answer_takes_the_best_of_it(open_page: OpenPage) -> None:
    page = open_page()
    page.keyboard.press("Control+k")
    expect(chosen(page)).to_have_count(1)
    page.keyboard.type("stripe")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/(servers/stripe/|tools/mcp__stripe)"))


def test_defers_a_server_with_its_preview_and_refreshes_one(open_page: OpenPage) -> None:
    page = open_page()
    page.keyboard.press("Control+k")
    page.keyboard.type("load stripe")
    expect(chosen(page)).to_contain_text("Load stripe")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Apply")).to_be_visible()
    page.keyboard.press("Control+k")
    page.keyboard.type("refresh workshop")
    expect(chosen(page)).to_contain_text("Refresh workshop")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("workshop")


def test_is_a_sheet_on_a_phone_and_axe_finds_nothing(open_page: OpenPage) -> None:
    for width in (390, 1440):
        page = open_page(width=width)
        page.locator("[data-opens=palette]").locator("visible=true").click()
        field(page).fill("create")
        expect(palette(page).get_by_role("option", name=re.compile("create")).first).to_be_visible()
        assert find_problems(page) == []
    page = open_page(width=390, has_touch=True, is_mobile=True)
    page.locator("[data-opens=palette]").locator("visible=true").tap()
    box = palette(page).bounding_box()
    assert box is not None
    assert (box["x"], box["y"], box["width"]) == (0, 0, 390)
    page.get_by_role("button", name="Close").tap()
    expect(palette(page)).to_have_count(0)
