"""An instance full of markup, every page of it in Chromium: nothing runs, and nothing had to be blocked."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, StorageState

from tests.browser.conftest import TIMEOUT_MS, Watch, sign_in
from tests.browser.hostile_catalog import LONG_MARKUP, MARKUP
from tests.harness.addresses import console_addresses
from tests.harness.instance import Instance, running_instance
from tests.harness.prepared import prepared

pytestmark = pytest.mark.slow

FILL = "from tests.browser import hostile_catalog; hostile_catalog.print_things()"
# What a reader can type into an address, or be sent in one.
QUERY = dict.fromkeys(("q", "server", "policy", "tag", "who", "next", "model"), LONG_MARKUP[:180])
LISTEN = """
addEventListener("securitypolicyviolation", (seen) => {
    window.heard = true;
    pwned(`${seen.effectiveDirective} ${seen.blockedURI} ${seen.sample}`);
});
"""
HIDDEN = re.compile(r"\\u\{202e\}")


@dataclass
class Hostile:
    instance: Instance
    things: dict[str, object]
    signed_in: StorageState
    runs: list[str] = field(default_factory=list)

    def paths(self) -> list[str]:
        """Every address of the console, about hostile things, plain and with a hostile query."""
        things = {name: quote(str(value), safe="") for name, value in self.things.items()}
        plain = [address.fill(things) for address in console_addresses()]
        return [*plain, *(f"{path}?{urlencode(QUERY)}" for path in plain)]


@pytest.fixture(scope="module")
def hostile(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hostile]:
    with running_instance(prepared(tmp_path_factory.mktemp("hostile")), "--no-demo") as instance:
        instance.wait_until_healthy()
        filled = instance.manage("shell", "--verbosity", "0", "--command", FILL)
        assert filled.returncode == 0, filled.stderr
        context = browser.new_context(base_url=instance.url)
        page = context.new_page()
        page.goto("/sign-in/")
        sign_in(page, instance)
        yield Hostile(instance, json.loads(filled.stdout.splitlines()[-1]), context.storage_state())
        context.close()


def open_context(browser: Browser, hostile: Hostile, *, without_policy: bool) -> BrowserContext:
    """Listens before a page's first line: for whatever ran, and for whatever the browser had to block."""
    context = browser.new_context(
        base_url=hostile.instance.url, storage_state=hostile.signed_in, bypass_csp=without_policy
    )
    context.set_default_timeout(TIMEOUT_MS)
    context.expose_function("pwned", lambda what: hostile.runs.append(str(what)))
    context.add_init_script(LISTEN)
    return context


def pages_of(context: BrowserContext, hostile: Hostile) -> list[str]:
    """Addresses that answer a reader with a page: no files, no parts of pages, not what only takes a form."""
    found = []
    for path in hostile.paths():
        answer = context.request.get(path, max_redirects=0)
        assert answer.status < 500, f"{path}\n{hostile.instance.output[-2000:]}"
        if answer.status == 200 and answer.text().startswith("<!doctype html>"):
            found.append(path)
    return found


UNFOLD = """async () => {
    document.querySelectorAll("details").forEach((one) => { one.open = true; });
    await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
}"""


def unfold(page: Page) -> None:
    """Open what is folded away, and wait until it is drawn: by then whatever can run has run."""
    page.evaluate(UNFOLD)


@pytest.mark.parametrize("without_policy", [False, True], ids=["as it is", "with the policy off"])
def test_nothing_runs_and_nothing_had_to_be_blocked(
    browser: Browser, hostile: Hostile, without_policy: bool
) -> None:
    """With the policy off, escaping alone has to hold; with it on, the browser has nothing to complain of."""
    context = open_context(browser, hostile, without_policy=without_policy)
    shown, revealed, troubles = 0, 0, []
    paths = pages_of(context, hostile)
    for path in paths:
        page = context.new_page()
        watch = Watch(page, hostile.instance.url)
        page.goto(path)
        unfold(page)
        text = page.locator("body").inner_text()
        shown += MARKUP in text
        revealed += bool(HIDDEN.search(text))
        troubles += [f"{path}: {trouble}" for trouble in (*watch.troubles, *hostile.runs)]
        hostile.runs.clear()
        page.close()
    context.close()
    assert troubles == []
    assert len(paths) >= 30
    assert shown >= 15, "the attacks must be on the pages to prove anything"
    assert revealed >= 5, "what cannot be seen is to be shown by its number"


def test_the_listener_hears_what_it_listens_for(browser: Browser, hostile: Hostile) -> None:
    """Without this, the test above would pass on a page that is deaf."""
    context = open_context(browser, hostile, without_policy=False)
    page = context.new_page()
    page.goto("/account/")
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=pwned(1)>')")
    page.wait_for_function("window.heard")
    context.close()
    assert any("script-src" in run for run in hostile.runs)
    hostile.runs.clear()


def test_file_for_a_spreadsheet_runs_nothing_either(browser: Browser, hostile: Hostile) -> None:
    context = open_context(browser, hostile, without_policy=False)
    for path in ("/tools.csv", "/tools.json"):
        answer = context.request.get(path)
        assert answer.headers["content-disposition"].startswith("attachment")
        assert answer.headers["x-content-type-options"] == "nosniff"
    context.close()
