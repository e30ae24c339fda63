"""The interactive documents of the API: every operation is there and can be called, nothing is foreign."""

import json

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.harness.instance import ROOT, Instance

pytestmark = pytest.mark.slow

DOCUMENT = json.loads((ROOT / "tests" / "openapi.json").read_text())
OPERATIONS = [operation for methods in DOCUMENT["paths"].values() for operation in methods.values()]


def test_every_operation_is_shown_and_one_is_called_with_a_key(
    open_page: OpenPage, instance: Instance
) -> None:
    key = instance.manage("create_key", "reader").stdout.strip()
    page = open_page("/api/v1/docs", is_signed_in=False)
    expect(page.locator(".opblock")).to_have_count(len(OPERATIONS))
    page.locator(".authorize").first.click()
    dialog = page.locator(".modal-ux")
    dialog.locator("input").first.fill(key)
    dialog.locator("button.authorize").first.click()
    dialog.locator("button.btn-done").first.click()
    operation = page.locator("#operations-sessions-create_session")
    operation.locator(".opblock-summary-control").click()
    operation.get_by_role("button", name="Try it out").click()
    operation.get_by_role("button", name="Execute").click()
    expect(operation.locator(".live-responses-table .response-col_status").last).to_contain_text("201")
