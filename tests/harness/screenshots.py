"""Pictures of every page, light and dark, wide and narrow, of a demo instance started for them.

The README's three have names without a width.

Run from the project's folder: python -m tests.harness.screenshots [FOLDER] [--only NAME…]
"""

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.conftest import CHROMIUM, OPTIONS, sign_in
from tests.harness.agent_days import work_a_day
from tests.harness.instance import Instance, running_instance

WIDTHS = (1440, 390)
SCHEMES = ("light", "dark")
PAGES = {
    "overview": "/",
    "servers": "/servers/",
    "server": "/servers/github/",
    "server-loading": "/servers/github/loading/?defer=load",
    "server-edit": "/servers/workshop/edit/?field=args",
    "add-server": "/add-server/",
    "imported": "/imported/?servers=1-20",
    "tools": "/tools/",
    "tools-filtered": "/tools/?server=github&decision=defer",
    "bulk-edit": "/bulk-edit/?all=1&server=github",
    "tool": "/tools/mcp__github__create_pull_request/",
    "tool-sessions": "/tools/mcp__github__create_pull_request/sessions/",
    "review": "/review/",
    "policies": "/policies/",
    "policy": "/policies/default/",
    "policy-agent": "/policies/default/agent/?format=anthropic",
    "policy-client": "/policies/default/agent/?format=gateway",
    "policy-editor": "/policies/default/edit/",
    "new-policy": "/new-policy/",
    "sessions": "/sessions/",
    "connect": "/connect/",
    "gateway": "/gateway/",
    "server-gateway": "/gateway/servers/workshop/",
    "tool-gateway": "/tools/mcp__workshop__format_json/gateway/",
    "console": "/console/?q=create+a+pull+request",
    "console-start": "/console/",
    "console-rankers": "/console/?q=give+the+customer+their+money+back&view=rankers",
    "console-answer": "/console/?q=create+a+pull+request&view=answer",
    "saved-queries": "/console/saved/",
    "models": "/models/?model=claude-opus-4-5",
    "keys": "/keys/",
    "changes": "/changes/",
    "account": "/account/",
    "system": "/system/",
}
# Its address is known only once there is one.
SESSION = "session"
NAMES = [*PAGES, SESSION]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("docs/images"))
    parser.add_argument("--only", nargs="*", default=NAMES, choices=NAMES)
    wanted = parser.parse_args()
    wanted.folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as data,
        running_instance(Path(data)) as instance,
        _chromium() as browser,
    ):
        instance.wait_until_healthy()
        instance.manage("refresh", "--wait")
        pages = {**PAGES, SESSION: work_a_day(instance)}
        administer_a_day(_open(browser, instance, WIDTHS[0], SCHEMES[0]))
        _shoot_for_readme(browser, instance, wanted.folder)
        for width in WIDTHS:
            for scheme in SCHEMES:
                page = _arrive(browser, instance, width, scheme)
                ending = f"-{width}-{scheme}.png"
                _shoot(page, "/sign-in/", wanted.folder / f"sign-in{ending}")
                sign_in(page, instance)
                for name in wanted.only:
                    _shoot(page, pages[name], wanted.folder / f"{name}{ending}")
                page.context.close()


def administer_a_day(page: Page) -> None:
    """What an admin has done by the evening: a second policy, a version of the first, keys with limits."""
    page.goto("/new-policy/")
    page.get_by_label("Name").fill("large-window")
    page.get_by_role("button", name="Create policy").click()
    page.get_by_label("Mode").select_option("auto")
    page.get_by_label("Threshold unit").select_option("context_percent")
    page.get_by_role("button", name="Save").click()
    page.goto("/policies/default/edit/")
    page.get_by_label("Results").fill("8")
    page.get_by_role("button", name="Save").click()
    for name, scope, limit in (("coding-agent", "agent", "600"), ("deploy-script", "admin", "")):
        page.goto("/keys/")
        page.get_by_label("Name").fill(name)
        page.get_by_label("Scope").select_option(scope)
        page.get_by_label("Requests a minute").fill(limit)
        page.get_by_role("button", name="Create key").click()
    page.context.close()


def _shoot_for_readme(browser: Browser, instance: Instance, folder: Path) -> None:
    """One screen each: what tools cost, what a change would do, why a tool is found."""
    page = _open(browser, instance, WIDTHS[0], "light")
    _shoot(page, "/", folder / "overview.png", full_page=False)
    page.goto("/policies/default/edit/")
    page.get_by_label("Mode").select_option("auto")
    page.get_by_label("Threshold", exact=True).fill("250,000")
    page.locator("#policy-preview", has_text="tools change").wait_for()
    page.screenshot(path=folder / "policy-editor.png")
    page.context.close()
    page = _open(browser, instance, WIDTHS[0], "dark")
    _shoot(page, PAGES["console"], folder / "test-console.png", full_page=False)
    page.context.close()


@contextmanager
def _chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield browser
        browser.close()


def _open(browser: Browser, instance: Instance, width: int, scheme: str) -> Page:
    page = _arrive(browser, instance, width, scheme)
    sign_in(page, instance)
    return page


def _arrive(browser: Browser, instance: Instance, width: int, scheme: str) -> Page:
    """Before the sign-in."""
    context = browser.new_context(
        base_url=instance.url,
        viewport={"width": width, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    page = context.new_page()
    page.goto("/sign-in/")
    return page


def _shoot(page: Page, address: str, path: Path, *, full_page: bool = True) -> None:
    page.goto(address)
    page.wait_for_load_state("networkidle")
    page.screenshot(path=path, full_page=full_page)


if __name__ == "__main__":
    main()
