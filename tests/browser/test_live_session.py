"""Following an agent while it works: what it does over REST appears on open pages without a reload."""

import re
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage
from tests.harness import agent_days
from tests.harness.instance import Instance
from tests.harness.rest import RestClient


@pytest.fixture(scope="module")
def rest(instance: Instance) -> RestClient:
    return agent_days.connect(instance, "followed-agent")


def mark(page: Page) -> None:
    """A page that is loaded anew loses this."""
    page.evaluate("document.body.dataset.sameDocument = 'yes'")


def is_marked(page: Page) -> bool:
    return bool(page.evaluate("document.body.dataset.sameDocument === 'yes'"))


def test_timeline_tells_the_time_of_the_readers_zone(open_page: OpenPage, rest: RestClient) -> None:
    session_id = agent_days.begin(rest, "far-away")
    page = open_page(f"/sessions/{session_id}/", timezone_id="Asia/Tokyo")
    timeline = page.locator("section", has=page.get_by_role("heading", name="Timeline"))
    clock = timeline.locator("time[data-clock]").first
    began = datetime.fromisoformat(str(clock.get_attribute("datetime"))).astimezone(ZoneInfo("Asia/Tokyo"))
    expect(clock).to_have_text(f"{began:%H:%M:%S}")
    expect(clock).to_have_attribute("title", f"{began:%Y-%m-%d %H:%M:%S} GMT+9")
    expect(timeline.locator("[data-zone]")).to_have_text("GMT+9")


def test_live_agent_is_followed_and_reset(open_page: OpenPage, rest: RestClient) -> None:
    session_id = agent_days.begin(rest, "live-journey")
    page = open_page("/sessions/?q=live-journey")
    page.get_by_role("link", name="live-journey").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("live-journey")
    timeline = page.locator("section", has=page.get_by_role("heading", name="Timeline"))
    discovered = page.locator("section", has=page.get_by_role("heading", name="Discovered tools"))
    expect(timeline).to_contain_text("Session started")
    expect(page.locator("#course-chart canvas")).to_be_visible()
    page.get_by_text("As a table").click()
    mark(page)

    path = f"/sessions/{session_id}"
    found = rest.post(f"{path}/search", {"query": "create a pull request", "max_results": 2})
    assert len(found["loaded"]) == 2
    expect(timeline).to_contain_text("create a pull request")
    expect(timeline).to_contain_text("Loaded 2 tools")
    expect(discovered.get_by_role("link")).to_have_count(2)
    rest.post(f"{path}/turns", {"context_used": 12_345})
    expect(timeline).to_contain_text("Turn 1 started with 12,345 tokens of context used")
    expect(page.locator("#course-table tbody tr")).to_have_count(2)
    expect(page.locator("#course-table")).to_be_visible()
    expect(page.locator("#course-chart canvas")).to_be_visible()
    assert is_marked(page)

    page.locator("summary", has_text="Reset").click()
    expect(page.get_by_text("what searches loaded is dropped")).to_be_visible()
    page.get_by_role("button", name="Reset the session").click()
    expect(page.get_by_role("status").locator("[data-toast]")).to_contain_text("The session is reset")
    expect(discovered).to_contain_text("None")
    expect(timeline).to_contain_text("Reset by admin")
    assert rest.get(path)["counts"]["discovered"] == 0
    page.goto("/changes/?subject=session")
    expect(page.locator("tbody tr").first).to_contain_text("live-journey")


def test_question_stays_open_while_the_agent_works_on(open_page: OpenPage, rest: RestClient) -> None:
    session_id = agent_days.begin(rest, "open-question")
    path = f"/sessions/{session_id}"
    rest.post(f"{path}/search", {"query": "create a pull request", "max_results": 1})
    page = open_page(f"{path}/")
    page.locator("summary", has_text="Unload all").click()
    with page.expect_response(lambda answer: answer.status == 200 and path in answer.url):
        rest.post(f"{path}/turns", {})
    expect(page.get_by_role("button", name="Unload them all")).to_be_visible()
    page.get_by_role("button", name="Unload them all").click()
    expect(page.get_by_role("status").locator("[data-toast]")).to_contain_text("Unloaded 1 tool.")
    assert rest.get(path)["counts"]["discovered"] == 0


def test_session_that_is_deleted_leaves_a_note_and_silence(open_page: OpenPage, rest: RestClient) -> None:
    session_id = agent_days.begin(rest, "short-lived")
    page = open_page(f"/sessions/{session_id}/")
    assert rest.call("DELETE", f"/sessions/{session_id}").status == 204
    expect(page.get_by_role("heading", level=1)).to_have_text("This session has ended")
    expect(page.locator("#session-live[hx-get]")).to_have_count(0)


def test_page_can_be_read_and_acted_on_without_javascript(open_page: OpenPage, rest: RestClient) -> None:
    session_id = agent_days.begin(rest, "without-script")
    rest.post(f"/sessions/{session_id}/search", {"query": "create a pull request", "max_results": 1})
    page = open_page(f"/sessions/{session_id}/", java_script_enabled=False, width=390)
    expect(page.locator("#course-chart")).to_be_hidden()
    page.get_by_text("As a table").click()
    expect(page.locator("#course-table tbody tr")).to_have_count(1)
    page.locator("summary", has_text=re.compile(r"^Unload$")).click()
    page.get_by_role("button", name="Unload create_pull_request").click()
    expect(page.get_by_role("status")).to_contain_text("Unloaded 1 tool.")
    assert rest.get(f"/sessions/{session_id}")["counts"]["discovered"] == 0


@pytest.mark.slow
def test_lists_follow_too(open_page: OpenPage, rest: RestClient) -> None:
    overview, sessions = open_page("/"), open_page("/sessions/")
    for page in (overview, sessions):
        mark(page)
    session_id = agent_days.begin(rest, "newcomer")
    expect(sessions.get_by_role("link", name="newcomer")).to_be_visible()
    rest.post(f"/sessions/{session_id}/search", {"query": "play some jazz"})
    misses = overview.locator(
        "section", has=overview.get_by_role("heading", name="Searches that found nothing")
    )
    expect(misses.get_by_role("link", name="play some jazz")).to_be_visible()
    assert is_marked(overview)
    assert is_marked(sessions)
    overview.get_by_role("link", name="7 days").click()
    expect(overview).to_have_url(re.compile(r"/\?period=7d$"))
    expect(overview.locator("#activity")).to_contain_text("in six hours")
    misses.get_by_role("link", name="play some jazz").click()
    expect(overview).to_have_url(re.compile(r"/console/\?q=play"))


def show(page: Page, *, is_hidden: bool) -> None:
    """As a browser tells of a tab that somebody leaves or comes back to."""
    page.evaluate(
        """(isHidden) => {
          Object.defineProperty(document, "hidden", { configurable: true, get: () => isHidden });
          document.dispatchEvent(new Event("visibilitychange"));
        }""",
        is_hidden,
    )


@pytest.mark.slow
def test_hidden_tab_asks_for_nothing_and_catches_up_at_once(open_page: OpenPage, rest: RestClient) -> None:
    session_id = agent_days.begin(rest, "hidden-tab")
    page = open_page(f"/sessions/{session_id}/")
    timeline = page.locator("section", has=page.get_by_role("heading", name="Timeline"))
    expect(timeline).to_contain_text("Session started")
    page.evaluate(
        """() => {
          const { dataset } = document.body;
          dataset.held = "0";
          document.addEventListener("htmx:confirm", (event) => {
            if (event.defaultPrevented) dataset.held = String(Number(dataset.held) + 1);
          });
        }"""
    )
    show(page, is_hidden=True)
    page.wait_for_load_state("networkidle")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    rest.post(f"/sessions/{session_id}/search", {"query": "create a pull request", "max_results": 2})
    expect(page.locator("body")).to_have_attribute("data-held", re.compile("[2-9]"))
    assert asked == []
    show(page, is_hidden=False)
    expect(timeline).to_contain_text("create a pull request")
    assert asked
