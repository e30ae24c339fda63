"""Pictures of every page, light and dark, wide and narrow, of a demo instance started for them.

Run from the project's folder: python -m tests.screenshots [FOLDER] [--only NAME…]
"""

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.conftest import CHROMIUM, OPTIONS, sign_in
from tests.instance import Instance, running_instance

WIDTHS = (1440, 390)
SCHEMES = ("light", "dark")
PAGES = {
    "overview": "/",
    "servers": "/servers/",
    "server": "/servers/github/",
    "add-server": "/add-server/",
    "tools": "/tools/",
    "tools-filtered": "/tools/?server=github&decision=defer",
    "bulk-edit": "/bulk-edit/?all=1&server=github",
    "tool": "/tools/mcp__github__create_pull_request/",
    "policies": "/policies/",
    "policy": "/policies/default/",
    "policy-editor": "/policies/default/edit/",
    "new-policy": "/new-policy/",
    "sessions": "/sessions/",
    "console": "/console/?q=create+a+pull+request",
    "keys": "/keys/",
    "changes": "/changes/",
    "account": "/account/",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("docs/images"))
    parser.add_argument("--only", nargs="*", default=list(PAGES), choices=list(PAGES))
    wanted = parser.parse_args()
    wanted.folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as data,
        running_instance(Path(data)) as instance,
        _chromium() as browser,
    ):
        instance.wait_until_healthy()
        for width in WIDTHS:
            for scheme in SCHEMES:
                page = _open(browser, instance, width, scheme)
                for name in wanted.only:
                    _shoot(page, PAGES[name], wanted.folder / f"{name}-{width}-{scheme}.png")


@contextmanager
def _chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield browser
        browser.close()


def _open(browser: Browser, instance: Instance, width: int, scheme: str) -> Page:
    context = browser.new_context(
        base_url=instance.url,
        viewport={"width": width, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    page = context.new_page()
    page.goto("/sign-in/")
    sign_in(page, instance)
    return page


def _shoot(page: Page, address: str, path: Path) -> None:
    page.goto(address)
    page.wait_for_load_state("networkidle")
    page.screenshot(path=path, full_page=True)


if __name__ == "__main__":
    main()
