"""The first day with the demo: servers of one's own, the saving without the demo, a key, the first call."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import TIMEOUT_MS, Watch, sign_in
from tests.browser.test_accessibility import find_problems
from tests.harness.instance import Instance, running_instance
from tests.harness.prepared import prepared
from tests.servers.installed import RealServer, node_server, python_server, require_installed

REFRESHED_WITHIN_MS = 60_000
WIDE, NARROW = 1440, 390
REAL = (node_server("server-memory"), python_server("mcp-server-time"))


@pytest.fixture(params=[WIDE, NARROW])
def first_day(
    request: pytest.FixtureRequest, tmp_path: Path, browser: Browser
) -> Iterator[tuple[Page, Instance]]:
    with running_instance(prepared(tmp_path)) as instance:
        instance.wait_until_healthy()
        viewport = {"width": request.param, "height": 900}
        context = browser.new_context(base_url=instance.url, viewport=viewport)  # type: ignore[arg-type]
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = context.new_page()
        page.set_default_timeout(TIMEOUT_MS)
        expect.set_options(timeout=TIMEOUT_MS)
        watch = Watch(page, instance.url)
        yield page, instance
        context.close()
        assert watch.troubles == []


@pytest.mark.slow
def test_ends_in_ones_own_saving_and_a_call(first_day: tuple[Page, Instance], tmp_path: Path) -> None:
    page, instance = first_day
    page.goto("/")
    sign_in(page, instance)
    expect(page.get_by_text("You are looking at the demo")).to_be_visible()
    add_own_servers(page)
    see_own_saving(page)
    snippet = create_key(page)
    run_snippet(snippet, tmp_path)
    expect(page.locator("#first-call")).to_contain_text(re.compile(r"Seen \d+ s ago:\s+curl/"))
    page.goto("/")
    expect(page.locator(".first-steps .done")).to_have_count(3)
    page.get_by_role("button", name="Dismiss “Save a query”").click()
    expect(page.locator(".first-steps")).to_have_count(0)
    page.get_by_role("button", name="Remove the demo").click()
    expect(page.get_by_role("status").locator("[data-toast]")).to_contain_text("Removed the demo")
    expect(page.get_by_text("on 3 servers.")).to_be_visible()


def add_own_servers(page: Page) -> None:
    """A VS Code file with comments: two real servers, one whose program is missing, one that is disabled."""
    require_installed()
    page.get_by_role("link", name="Paste your config").click()
    good = ",\n".join(f'"{one.name}": {json.dumps(_describe(one))}' for one in REAL)
    page.get_by_label("Config, as JSON").fill(
        f"""{{ // my servers
          "servers": {{
            {good},
            "broken": {{"command": "no-such-program-here"}},
            "off": {{"command": "never-started", "disabled": true}},
          }},
        }}"""
    )
    plan = page.locator("#import-plan")
    expect(plan).to_contain_text("Read as vscode")
    expect(plan.locator("tr", has_text="broken")).to_contain_text("no-such-program-here")
    expect(plan.get_by_label("Import off")).not_to_be_checked()
    page.get_by_role("button", name="Import (3)").click()
    result = page.locator("#import-result")
    expect(result).not_to_contain_text("still being asked", timeout=REFRESHED_WITHIN_MS)
    expect(result.locator("h2")).to_contain_text(
        re.compile(r"3 servers: \d+ tools,\s+[\d,]+ tokens → [\d,]+")
    )
    expect(result).to_contain_text("1 needs you")
    expect(result.locator("tbody tr").first).to_contain_text("broken")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def _describe(server: RealServer) -> dict[str, object]:
    return {"type": "stdio", "command": server.command, "args": list(server.args)}


def see_own_saving(page: Page) -> None:
    """On a page that was opened while the demo was still counted, and is not reloaded."""
    page.goto("/")
    page.evaluate("window.wasNotReloaded = true")
    expect(page.get_by_text("every number here is of your own tools")).to_be_visible(
        timeout=REFRESHED_WITHIN_MS
    )
    expect(page.locator("#overview-tables").get_by_role("link", name="server-memory")).to_be_visible(
        timeout=REFRESHED_WITHIN_MS
    )
    expect(page.locator("#overview-tables").get_by_role("link", name="github")).to_have_count(0)
    expect(page.locator("#token-map canvas")).to_be_visible()
    sums = re.compile(r"\d+ tools of [\d,]+ tokens on average, on\s+3 servers")
    expect(page.get_by_text(sums)).to_be_visible()
    saved = page.locator(".measure", has_text="Saved").locator(".value")
    expect(saved).to_have_text(re.compile(r"^\d\d(\.\d+)?%$"))
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def create_key(page: Page) -> str:
    """Gives the curl snippet, as the button copies it."""
    page.get_by_role("link", name="Create a key").click()
    page.get_by_label("Name", exact=True).fill("my-agent")
    page.get_by_role("button", name=re.compile(r"^(Make the key|Create key)$")).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Connect an agent")
    expect(page.locator("#key-text")).to_have_text(re.compile(r"tk_\w{8}_[\w-]{43}"))
    expect(page.locator("#first-call")).to_contain_text("Waiting for the first call")
    assert find_problems(page) == []
    for label in ("Anthropic SDK", "OpenAI SDK", "curl"):
        page.get_by_text(label, exact=True).click()
        expect(page.locator(".agent-panel:visible")).to_have_count(1)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.locator(".agent-panel:visible").get_by_role("button", name="Copy").click()
    expect(page.locator(".agent-panel:visible").get_by_role("button", name="Copied")).to_be_visible()
    return str(page.evaluate("navigator.clipboard.readText()"))


def run_snippet(snippet: str, folder: Path) -> None:
    script = folder / "snippet.sh"
    script.write_text(snippet)
    done = subprocess.run(
        ["bash", str(script)],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert '"outcome":"matched"' in done.stdout
