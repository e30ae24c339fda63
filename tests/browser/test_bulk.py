"""Ten thousand tools: five hundred of them, chosen by a filter, are edited at once and the edit is undone."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, StorageState, expect

from tests.browser.conftest import OpenPage, keep_sign_in
from tests.harness.instance import Instance, running_instance
from tests.harness.prepared import prepared

pytestmark = pytest.mark.slow

# Stored and decided as an import does it. The pages need no search index: the worker builds it meanwhile.
FILL = """
from catalog.services import decisions, snapshots
from catalog.access.actors import COMMAND_LINE

verbs = ("list", "create", "update", "delete", "search")
snapshots.import_snapshots(
    definitions_by_server={
        f"team-{team:02}": [
            {"name": f"{verbs[number % 5]}_thing_{number:03}", "description": f"Handles thing {number}."}
            for number in range(500)
        ]
        for team in range(20)
    },
    actor=COMMAND_LINE,
)
decisions.bring_up_to_date()
"""


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    """One of its own: the demo's numbers are other tests' business."""
    with running_instance(prepared(tmp_path_factory.mktemp("bulk")), "--no-demo") as running:
        running.wait_until_healthy()
        filled = running.manage("shell", "-c", FILL)
        assert filled.returncode == 0, filled.stderr
        yield running


@pytest.fixture(scope="module")
def signed_in_state(instance: Instance, browser: Browser) -> StorageState:
    return keep_sign_in(instance, browser)


def test_five_hundred_of_ten_thousand_are_edited_by_filter_and_the_edit_is_undone(
    open_page: OpenPage,
) -> None:
    page = open_page("/tools/")
    expect(page.locator(".table-foot")).to_contain_text("1–50 of 10,000 tools")
    page.get_by_label("Server", exact=True).select_option("team-07")
    page.get_by_role("button", name=re.compile("Edit all 500 matching")).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Edit 500 tools")
    page.get_by_label("Loading").select_option("always")
    expect(page.locator("#bulk-preview")).to_contain_text("500 tools change")
    expect(page.locator("#bulk-preview")).to_contain_text("team-07")
    page.get_by_label("Add tags").fill("pinned")
    page.get_by_role("button", name="Apply to 500 tools").click()
    toast = page.get_by_role("status").locator("[data-toast]")
    expect(toast).to_contain_text("Changed 500 tools.")
    expect(_always(page)).to_have_count(50)
    page.goto("/tools/?tag=pinned&loading=always")
    expect(page.locator(".table-foot")).to_contain_text("1–50 of 500 tools")
    page.goto("/changes/?subject=tool")
    page.locator("tbody tr", has_text="500 tools").get_by_role("button", name="Undo").click()
    expect(page.get_by_role("status").locator("[data-toast]")).to_contain_text("Undone")
    page.goto("/tools/?server=team-07")
    expect(page.locator(".table-foot")).to_contain_text("1–50 of 500 tools")
    expect(_always(page)).to_have_count(0)
    expect(page.get_by_label("Tag", exact=True)).to_have_count(0)


def test_one_switch_changes_one_tool_keeps_the_focus_and_is_undone_from_its_toast(
    open_page: OpenPage,
) -> None:
    page = open_page("/tools/?server=team-03&sort=name&page=2")
    row = page.locator("tbody tr").nth(4)
    name = row.locator("a.name").inner_text()
    row.get_by_text("Always", exact=True).click()
    expect(row.get_by_label("Always", exact=True)).to_be_focused()
    toast = page.locator("#toasts [data-toast]")
    expect(toast).to_contain_text(f"{name} always loads now.")
    expect(row.locator(".decision")).to_contain_text("the tool is set to always load")
    expect(_always(page)).to_have_count(1)
    toast.get_by_role("button", name="Undo").click()
    expect(page.locator("#toasts [data-toast]")).to_contain_text("Undone")
    expect(page).to_have_url(re.compile(r"/tools/\?server=team-03&sort=name&page=2$"))
    expect(_always(page)).to_have_count(0)


def test_ticks_survive_sorting_and_the_address_says_only_what_is_filtered(open_page: OpenPage) -> None:
    page = open_page("/tools/?q=thing_00")
    page.get_by_label("Server", exact=True).select_option("team-09")
    expect(page).to_have_url(re.compile(r"/tools/\?q=thing_00&server=team-09$"))
    page.locator("tbody input[type=checkbox]").nth(3).check()
    page.locator("#sort-name").click()
    expect(page).to_have_url(re.compile(r"/tools/\?q=thing_00&server=team-09&sort=name$"))
    expect(page.locator("th[aria-sort=ascending]")).to_have_text("Tool")
    expect(page.locator("tbody input[type=checkbox]:checked")).to_have_count(1)
    expect(page.get_by_role("button", name="Edit selected")).to_have_text("Edit selected (1)")
    page.locator("#sort-name").click()
    expect(page.locator("th[aria-sort=descending]")).to_have_text("Tool")
    page.go_back()
    expect(page.locator("th[aria-sort=ascending]")).to_have_text("Tool")


def test_switch_works_without_javascript(open_page: OpenPage) -> None:
    page = open_page("/tools/?server=team-05&sort=name", java_script_enabled=False)
    row = page.locator("tbody tr").first
    row.get_by_text("Defer", exact=True).click()
    row.get_by_role("button", name="Set").click()
    expect(page.locator("#toasts [data-toast]")).to_contain_text("is deferred now")
    expect(page.locator("tbody tr").first.get_by_label("Defer", exact=True)).to_be_checked()
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("tbody tr").first.get_by_label("Inherit", exact=True)).to_be_checked()


def _always(page: Page) -> Locator:
    return page.locator("tbody input[value=always]:checked")
