"""axe-core finds nothing serious on any page, light or dark."""

from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import OpenPage
from tests.harness.agent_days import work_a_day
from tests.harness.instance import Instance
from tests.harness.screenshots import PAGES

AXE = (Path(__file__).resolve().parent.parent / "vendor/axe-core/axe.min.js").read_text(encoding="utf-8")
SERIOUS = {"serious", "critical"}
ALSO = {"landmark-unique"}


@pytest.fixture(scope="module")
def session_address(instance: Instance) -> str:
    return work_a_day(instance)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_a_serious_problem(open_page: OpenPage, scheme: str, session_address: str) -> None:
    page = open_page("/sign-in/", is_signed_in=False, color_scheme=scheme)
    findings = find_problems(page)
    page = open_page(color_scheme=scheme)
    for address in [*PAGES.values(), session_address]:
        page.goto(address)
        findings += find_problems(page)
    assert findings == []


def find_problems(page: Page) -> list[str]:
    """Through the debugger, past the page's own policy, which lets no script in."""
    page.evaluate(AXE)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{page.url} {violation['id']} ({violation['impact']}): {node['html'][:200]}"
        for violation in found["violations"]
        if violation["impact"] in SERIOUS or violation["id"] in ALSO
        for node in violation["nodes"]
    ]
