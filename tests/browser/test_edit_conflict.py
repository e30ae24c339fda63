"""Two admins on one policy: the later save is told what came before it, and made on purpose."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, StorageState, expect

from tests.browser.conftest import TIMEOUT_MS
from tests.harness.instance import Instance

EDITOR = "/policies/default/edit/"


@pytest.fixture
def editors(
    instance: Instance, browser: Browser, signed_in_state: StorageState
) -> Iterator[tuple[Page, Page]]:
    """The same editor open in two browsers. Not watched: a conflict is an answer of status 409."""
    contexts = [browser.new_context(base_url=instance.url, storage_state=signed_in_state) for _ in range(2)]
    pages = [context.new_page() for context in contexts]
    for page in pages:
        page.set_default_timeout(TIMEOUT_MS)
        page.goto(EDITOR)
    expect.set_options(timeout=TIMEOUT_MS)
    yield pages[0], pages[1]
    for context in contexts:
        context.close()


def test_later_save_keeps_both_edits(editors: tuple[Page, Page]) -> None:
    first, second = editors
    first.get_by_label("Never defer").fill("read_file")
    first.get_by_role("button", name="Save", exact=True).click()
    first.wait_for_url("**/policies/default/")
    second.get_by_label("Prompt budget, in tokens").fill("321")
    second.get_by_role("button", name="Save", exact=True).click()
    notice = second.get_by_role("alert")
    expect(notice).to_contain_text("Not saved yet: the policy changed while you were editing.")
    expect(notice).to_contain_text("read_file")
    expect(second.get_by_label("Never defer")).to_have_value("read_file")
    expect(second.get_by_label("Prompt budget, in tokens")).to_have_value("321")
    notice.get_by_role("button", name="Save both").click()
    second.wait_for_url("**/policies/default/")
    second.goto(EDITOR)
    expect(second.get_by_label("Never defer")).to_have_value("read_file")
    expect(second.get_by_label("Prompt budget, in tokens")).to_have_value("321")
    put_back(second)


def put_back(page: Page) -> None:
    """Other tests use the same instance."""
    page.get_by_label("Never defer").fill("")
    page.get_by_label("Prompt budget, in tokens").fill("")
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_url("**/policies/default/")
