"""Switches by keyboard, edits that are not lost, fields that do not count; paper and touch screens."""

from playwright.sync_api import Dialog, Locator, expect

from tests.browser.conftest import OpenPage


def test_arrow_keys_save_only_where_they_stop(open_page: OpenPage) -> None:
    page = open_page("/tools/?server=slack&sort=name")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    row = page.locator("tbody tr").first
    row.get_by_label("Inherit", exact=True).focus()
    page.keyboard.press("ArrowRight")
    expect(row.get_by_label("Always", exact=True)).to_be_checked()
    page.wait_for_timeout(600)  # longer than a choice by mouse takes to be sent
    assert sent == []
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator("#toasts [data-toast]")).to_contain_text("defer")
    assert len(sent) == 1
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Escape")
    expect(row.get_by_label("Defer", exact=True)).to_be_checked()
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("tbody tr").first.get_by_label("Inherit", exact=True)).to_be_checked()


def test_shortcuts_work_while_a_radio_button_has_the_focus(open_page: OpenPage) -> None:
    page = open_page("/tools/?server=slack")
    page.locator("tbody tr").first.get_by_label("Inherit", exact=True).focus()
    page.keyboard.press("/")
    expect(page.get_by_label("Names and descriptions")).to_be_focused()


def test_unsaved_edits_are_asked_about_before_the_page_is_left(open_page: OpenPage) -> None:
    page = open_page("/policies/default/edit/")
    asked: list[str] = []

    def stay(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    page.on("dialog", stay)
    page.get_by_label("Results").fill("9")
    page.get_by_role("link", name="Cancel").click()
    expect(page.get_by_label("Results")).to_have_value("9")
    assert asked == ["beforeunload"]
    page.get_by_label("Results").fill("5")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("default")
    assert asked == ["beforeunload"]


def test_fields_that_do_not_count_look_disabled(open_page: OpenPage) -> None:
    page = open_page("/policies/default/edit/")
    threshold = page.get_by_label("Threshold", exact=True)
    expect(threshold).to_have_attribute("aria-disabled", "true")
    page.get_by_label("Mode").select_option("auto")
    expect(threshold).to_have_attribute("aria-disabled", "false")
    expect(page.get_by_label("Visible patterns")).to_have_attribute("aria-disabled", "true")


def test_overview_fits_on_paper(open_page: OpenPage) -> None:
    page = open_page()
    expect(page.locator("#token-map canvas")).to_be_visible()
    page.set_viewport_size({"width": 720, "height": 1000})
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth + 1")
    adjust = "getComputedStyle(document.querySelector('.state'), '::before').printColorAdjust"
    assert page.evaluate(adjust) == "exact"


def test_touch_screens_are_shown_no_keys(open_page: OpenPage) -> None:
    page = open_page("/tools/", width=390, has_touch=True, is_mobile=True)
    expect(page.locator(".filters kbd")).to_be_hidden()
    assert not any(map(is_cut, page.locator(".filters select").all()))
    expect(open_page("/tools/").locator(".filters kbd")).to_be_visible()


def is_cut(select: Locator) -> bool:
    """Whether the chosen words are wider than the place that the select has for them."""
    measure = """(select) => {
        const style = getComputedStyle(select);
        const pen = document.createElement("canvas").getContext("2d");
        pen.font = style.font;
        const words = pen.measureText(select.selectedOptions[0].text).width;
        return words > select.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    }"""
    return bool(select.evaluate(measure))
