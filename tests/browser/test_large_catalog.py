"""1,200 servers with 10,000 tools: the map, the palette and the field that finds a server."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, StorageState, expect

from tests.browser.conftest import OpenPage, keep_sign_in
from tests.browser.test_accessibility import find_problems
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
        f"team-{team:04}": [
            {"name": f"{verbs[number % 5]}_thing_{team}_{number}", "description": "x" * (team % 97 + 1) * 10}
            for number in range(300 if team == 7 else 8)
        ]
        for team in range(1_216)
    },
    actor=COMMAND_LINE,
)
decisions.bring_up_to_date()
"""


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    with running_instance(prepared(tmp_path_factory.mktemp("large")), "--no-demo") as running:
        running.wait_until_healthy()
        filled = running.manage("shell", "-c", FILL)
        assert filled.returncode == 0, filled.stderr
        yield running


@pytest.fixture(scope="module")
def signed_in_state(instance: Instance, browser: Browser) -> StorageState:
    return keep_sign_in(instance, browser)


def test_server_is_found_by_a_part_of_its_name_and_filters_the_tools(open_page: OpenPage) -> None:
    page = open_page("/tools/")
    server = page.get_by_role("combobox", name="Server")
    server.press_sequentially("1207")
    expect(page.get_by_role("option", name="team-1207")).to_have_attribute("aria-selected", "true")
    assert find_problems(page) == []
    server.press("Enter")
    expect(page).to_have_url(re.compile(r"server=team-1207"))
    expect(page.locator(".table-foot")).to_contain_text("8 tools")
    server.press_sequentially("nothing-like-it")
    page.locator("h1").click()
    expect(server).to_have_value("team-1207")
    server.fill("")
    page.locator("h1").click()
    expect(page.locator(".table-foot")).to_contain_text("of 10,020 tools")


def test_map_is_of_servers_and_opens_one(open_page: OpenPage) -> None:
    page = open_page()
    expect(page.locator("#token-map canvas")).to_be_visible()
    expect(page.get_by_text("rectangle is a server")).to_be_visible()
    page.locator("#token-map canvas").click(position={"x": 40, "y": 40})
    back = page.get_by_role("button", name="All servers")
    expect(back).to_be_visible()
    expect(page.locator("[data-map-path] a")).to_have_text(re.compile(r"team-\d{4}"))
    back.click()
    expect(page.get_by_text("rectangle is a server")).to_be_visible()


def test_palette_finds_one_of_ten_thousand(open_page: OpenPage) -> None:
    page = open_page("/servers/")
    page.keyboard.press("Control+k")
    page.keyboard.type("thing_1111_3")
    chosen = page.get_by_role("dialog").get_by_role("option", selected=True)
    expect(chosen).to_contain_text("thing_1111_3")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("delete_thing_1111_3")
