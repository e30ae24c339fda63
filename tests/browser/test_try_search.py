"""Try a query, compare rankers, save it, break it by a setting, see it fail."""

import json
import re

from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import OpenPage

QUERY, TOOL = "send a payment back", "mcp__stripe__create_refund"
# A worker follows the setting, then runs the queries again; the page asks for itself meanwhile.
FOLLOWS_WITHIN_MS = 30_000


def saved_row(page: Page) -> Locator:
    return page.get_by_role("region", name="Saved queries").get_by_role("row").filter(has_text=QUERY)


def open_saved(page: Page) -> None:
    """Wait until a worker has run what is saved for the catalog and the policy as they are now."""
    page.goto("/console/saved/")
    expect(page.locator("#saved-set[hx-trigger]")).to_have_count(0, timeout=FOLLOWS_WITHIN_MS)


def choose_ranker(page: Page, ranker: str) -> None:
    page.goto("/policies/default/edit/")
    page.get_by_label("Ranker").select_option(ranker)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("default")


def test_query_is_tried_compared_saved_broken_and_seen_to_fail(open_page: OpenPage) -> None:
    page = open_page("/console/")
    page.get_by_label("Query", exact=True).press_sequentially(QUERY, delay=5)
    first = page.locator(".hits > li").first
    expect(first).to_contain_text("create_refund")
    expect(first.locator("mark").first).to_be_visible()
    expect(first.get_by_role("region", name=re.compile("taken apart"))).to_contain_text("Sum")

    page.get_by_text("Compare rankers").click()
    expect(page.get_by_role("heading", name="Rankers side by side")).to_be_visible()
    expect(page.get_by_role("region", name="overlap")).to_contain_text("Not in this list: create_refund")
    expect(page.locator(".rank-lines line").first).to_be_attached()
    expect(page).to_have_url(re.compile("view=rankers"))

    page.get_by_text("Save this query").click()
    expect(page.get_by_label(TOOL)).to_be_checked()
    page.get_by_role("button", name="Save and run").click()
    toast = page.get_by_role("status").locator("[data-toast]")
    expect(toast).to_contain_text("It passes.")

    open_saved(page)
    expect(saved_row(page)).to_contain_text("passes")
    choose_ranker(page, "overlap")
    open_saved(page)
    expect(saved_row(page)).to_contain_text("fails")
    expect(page.locator("#saved-set")).to_contain_text("passed before and fail")
    expect(page.locator("#saved-set")).to_contain_text("bm25f → overlap")

    choose_ranker(page, "bm25f")
    open_saved(page)
    expect(saved_row(page)).to_contain_text("passes")
    saved_row(page).get_by_role("button", name="Delete").click()
    expect(toast).to_contain_text("Deleted")
    expect(saved_row(page)).to_have_count(0)


def test_agents_answer_is_shown_and_copied(open_page: OpenPage) -> None:
    page = open_page("/console/?q=create+a+pull+request", permissions=["clipboard-read", "clipboard-write"])
    page.get_by_text("Agent's answer").click()
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = json.loads(page.evaluate("navigator.clipboard.readText()"))
    assert copied["outcome"] == "matched"
    assert copied["loaded"][0] == "mcp__github__create_pull_request"


def test_near_miss_is_corrected_by_a_click(open_page: OpenPage) -> None:
    page = open_page("/console/")
    page.get_by_label("Query", exact=True).fill("list the chanels")
    page.get_by_role("link", name="channels", exact=True).click()
    expect(page.get_by_label("Query", exact=True)).to_have_value("list the channels")
    expect(page.locator(".hits > li").first).to_contain_text("list_channels")


def test_console_and_saved_queries_work_without_javascript(open_page: OpenPage) -> None:
    page = open_page("/console/", java_script_enabled=False)
    page.get_by_label("Query", exact=True).fill("+slack send")
    page.get_by_text("Compare rankers").click()
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("heading", name="Rankers side by side")).to_be_visible()
    page.get_by_role("link", name="Saved queries").click()
    page.get_by_role("button", name="Run now").click()
    expect(page.get_by_role("status").locator("[data-toast]")).to_contain_text("pass")
