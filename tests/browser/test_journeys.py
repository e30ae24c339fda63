"""Typical tasks of an admin, from the first look to the undo."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import TIMEOUT_MS, OpenPage, Watch, enable_demo, sign_in
from tests.harness.instance import ROOT, Instance, running_instance
from tests.harness.prepared import prepared
from tests.servers.installed import STDIO_SERVERS, require_installed

# Six real servers start one after the other on a small machine.
REFRESHED_WITHIN_MS = 90_000
# A worker follows an edit within seconds; a page opened again says so.
FOLLOWS_WITHIN_MS = 20_000


def paid_now(page: Page) -> Locator:
    return page.locator(".measure", has_text="Now it pays").locator(".value")


def count_tokens(value: Locator) -> int:
    return int(value.inner_text().removesuffix(" tokens").replace(",", ""))


def wait_for_payment(page: Page, tokens: str) -> None:
    """The overview asks for its figures again by itself; nothing is reloaded here."""
    page.goto("/")
    expect(paid_now(page)).to_have_text(f"{tokens} tokens", timeout=FOLLOWS_WITHIN_MS)


@pytest.fixture
def first_day(tmp_path: Path, browser: Browser) -> Iterator[tuple[Page, Instance]]:
    """An instance that nobody has signed in to yet, with nothing in it."""
    with running_instance(prepared(tmp_path), "--no-demo") as instance:
        instance.wait_until_healthy()
        context = browser.new_context(base_url=instance.url, viewport={"width": 1440, "height": 900})
        page = context.new_page()
        page.set_default_timeout(TIMEOUT_MS)
        watch = Watch(page, instance.url)
        yield page, instance
        context.close()
        assert watch.troubles == []


@pytest.mark.slow
def test_first_sign_in_leads_to_the_first_saving(first_day: tuple[Page, Instance]) -> None:
    page, instance = first_day
    page.goto("/")
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    sign_in(page, instance)
    expect(page.get_by_text("The catalog is empty")).to_be_visible()
    page.get_by_role("link", name="Paste your config").click()
    workshop = {"command": sys.executable, "args": [str(ROOT / "catalog/demo/workshop_server.py")]}
    page.get_by_label("Config, as JSON").fill(json.dumps({"mcpServers": {"workshop": workshop}}))
    page.get_by_role("button", name="Import").click()
    row = page.locator("tbody tr", has_text="workshop")
    expect(row).to_contain_text("Up to date", timeout=REFRESHED_WITHIN_MS)
    page.get_by_role("navigation", name="Main", exact=True).get_by_role("link", name="Overview").click()
    saved = page.locator(".measure", has_text="Saved").locator(".value")
    expect(saved).to_have_text(re.compile(r"^([2-9]\d|100)%$"), timeout=FOLLOWS_WITHIN_MS)
    everything = page.locator(".measure", has_text="With everything loaded").locator(".value")
    assert count_tokens(everything) > 500
    assert count_tokens(paid_now(page)) < count_tokens(everything)


@pytest.mark.slow
@pytest.mark.servers
def test_config_of_real_servers_is_pasted_and_the_refresh_watched(open_page: OpenPage) -> None:
    require_installed()
    page = open_page("/add-server/")
    servers = {f"real-{one.name}": {"command": one.command, "args": list(one.args)} for one in STDIO_SERVERS}
    page.get_by_label("Config, as JSON").fill(json.dumps({"mcpServers": servers}))
    plan = page.locator("#import-plan")
    for name in servers:
        expect(plan).to_contain_text(name)
    page.get_by_role("button", name="Import").click()
    result = page.locator("#import-result")
    expect(result.locator("h2")).to_contain_text(f"{len(servers)} servers:")
    page.evaluate("window.wasNotReloaded = true")
    rows = page.locator("tbody tr", has_text="real-")
    expect(rows.get_by_text("Asking…").first).to_be_visible()
    expect(result).not_to_contain_text("still being asked", timeout=REFRESHED_WITHIN_MS)
    expect(rows.locator(".state.good")).to_have_count(len(servers))
    assert page.evaluate("window.wasNotReloaded") is True
    page.get_by_role("link", name="real-server-everything").click()
    expect(page.get_by_role("link", name="get-sum", exact=True)).to_be_visible()
    for name in servers:
        page.goto(f"/servers/{name}/")
        page.locator("summary", has_text="Delete").click()
        page.get_by_label(f"Type {name} to delete it").fill(name)
        page.get_by_role("button", name="Delete the server").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Servers")
    expect(page.get_by_role("link", name="real-")).to_have_count(0)
    enable_demo(page)


def test_policy_is_edited_with_a_preview_and_rolled_back(open_page: OpenPage) -> None:
    page = open_page("/policies/default/")
    page.get_by_role("link", name="Edit").click()
    expect(page.locator("#policy-preview")).to_contain_text("Nothing changes")
    page.get_by_label("Mode").select_option("off")
    expect(page.locator("#policy-preview")).to_contain_text("tools change")
    expect(page.locator("#policy-preview")).to_contain_text("stripe")
    page.get_by_label("Results").fill("99")
    expect(page.locator("#policy-preview")).to_contain_text("Must be a number from 1 to 50")
    page.get_by_label("Results").fill("8")
    expect(page.locator("#policy-preview")).to_contain_text("tools change")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").locator("[data-toast]")).to_contain_text("Saved the policy default")
    versions = page.get_by_role("region", name="Versions")
    expect(versions.locator("tbody tr").first).to_contain_text("always → off")
    versions.get_by_role("link", name="Preview version").first.click()
    expect(page.locator("#policy-preview")).to_contain_text("tools change")
    expect(page.get_by_label("Mode")).to_have_value("always")
    page.get_by_role("link", name="Cancel").click()
    versions.get_by_role("button", name="Roll back to version").first.click()
    expect(page.get_by_role("status").locator("[data-toast]")).to_contain_text("again what it was")
    expect(versions.locator("tbody tr").first).to_contain_text("off → always")


def test_config_is_pasted_looked_at_imported_and_deleted_again(open_page: OpenPage) -> None:
    page = open_page("/servers/")
    page.get_by_role("link", name="Add servers").click()
    box, plan = page.get_by_label("Config, as JSON"), page.locator("#import-plan")
    box.fill('{"mcpServers": {')
    expect(plan).to_contain_text("invalid JSON")
    entry = {"url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": "Bearer s3cret-in-a-test"}}
    box.fill(json.dumps({"mcpServers": {"pasted": entry}}))
    expect(plan).to_contain_text("pasted")
    expect(plan.locator(".pill")).to_have_text("add")
    page.get_by_role("button", name="Import").click()
    expect(page.locator("#import-result")).to_contain_text("1 needs you")
    page.get_by_role("link", name="pasted").click()
    expect(page.get_by_text("127.0.0.1:9/mcp").first).to_be_visible()
    assert "s3cret" not in page.content()
    page.locator("summary", has_text="Delete").click()
    page.get_by_label("Type pasted to delete it").fill("pasted")
    page.get_by_role("button", name="Delete the server").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Servers")
    expect(page.get_by_role("link", name="pasted")).to_have_count(0)


def test_file_is_chosen_its_plan_corrected_and_some_of_it_imported(
    open_page: OpenPage, tmp_path: Path
) -> None:
    page = open_page("/add-server/")
    file = tmp_path / "mcp.json"
    file.write_text(
        """{ // as VS Code has it
          "inputs": [{"id": "key", "type": "promptString", "description": "The team's key"}],
          "servers": {
            "chosen": {"url": "http://127.0.0.1:9/mcp", "headers": {"X-Key": "${input:key}"}},
            "left": {"url": "http://127.0.0.1:9/mcp"},
            "off": {"command": "never-started", "disabled": true},
            "wrong": {"url": 5},
          },
        }"""
    )
    page.get_by_label("Or a file").set_input_files(file)
    plan = page.locator("#import-plan")
    expect(plan).to_contain_text("Read as vscode")
    expect(plan.locator("tr", has_text="wrong")).to_contain_text("url: must be text")
    expect(plan.get_by_label("Import off")).not_to_be_checked()
    plan.get_by_label("Import left").uncheck()
    plan.get_by_label("The team's key").fill("s3cret-in-a-test")
    expect(page.get_by_role("button", name="Import (1)")).to_be_enabled()
    page.get_by_role("button", name="Import (1)").click()
    expect(page.locator("#import-result h2")).to_contain_text("1 server:")
    expect(page.locator("#import-result")).to_contain_text("1 needs you")
    page.get_by_role("link", name="chosen").click()
    assert "s3cret" not in page.content()
    page.locator("summary", has_text="Delete").click()
    page.get_by_label("Type chosen to delete it").fill("chosen")
    page.get_by_role("button", name="Delete the server").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Servers")


def test_server_is_deferred_and_the_overview_changes(open_page: OpenPage) -> None:
    page = open_page()
    before = paid_now(page).inner_text()
    page.goto("/servers/")
    row = page.locator("tr", has_text="filesystem")
    row.get_by_text("Defer", exact=True).click()
    look = row.locator(".look")
    expect(look).to_contain_text("8 tools change")
    look.get_by_role("link", name="Keep as it is").click()
    expect(row.locator(".look")).to_have_count(0)
    expect(row.get_by_label("Load", exact=True)).to_be_checked()
    row.get_by_text("Defer", exact=True).click()
    row.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("status").locator("[data-toast]")).to_contain_text("is deferred now")
    page.goto("/")
    expect(paid_now(page)).not_to_have_text(before, timeout=FOLLOWS_WITHIN_MS)
    page.goto("/changes/?subject=server")
    page.locator("tbody tr", has_text="filesystem").first.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("status").locator("[data-toast]")).to_contain_text("Undone")
    wait_for_payment(page, before.removesuffix(" tokens"))


def test_tools_are_edited_by_filter_and_the_edit_is_undone(open_page: OpenPage) -> None:
    page = open_page("/tools/")
    page.get_by_label("Server", exact=True).select_option("slack")
    page.get_by_role("button", name=re.compile(r"Edit all 16 matching")).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Edit 16 tools")
    page.get_by_label("Loading").select_option("always")
    expect(page.locator("#bulk-preview")).to_contain_text("16 tools change")
    page.get_by_label("Add tags").fill("chat")
    page.get_by_role("button", name="Apply to 16 tools").click()
    expect(page).to_have_url(re.compile(r"/tools/\?.*server=slack"))
    toast = page.get_by_role("status").locator("[data-toast]")
    expect(toast).to_contain_text("Changed 16 tools.")
    expect(page.locator("tbody input[value=always]:checked")).to_have_count(16)
    expect(page.get_by_label("Tag", exact=True)).to_be_visible()
    toast.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("status").locator("[data-toast]")).to_contain_text("Undone")
    expect(page.locator("tbody input[value=always]:checked")).to_have_count(0)
    expect(page).to_have_url(re.compile(r"/tools/\?.*server=slack"))


def test_ticks_are_counted_and_lead_to_the_editor(open_page: OpenPage) -> None:
    page = open_page("/tools/?server=slack")
    button = page.get_by_role("button", name="Edit selected")
    expect(button).to_be_disabled()
    page.locator("tbody input[type=checkbox]").first.check()
    expect(button).to_have_text("Edit selected (1)")
    page.get_by_label("Select every tool on this page").check()
    expect(button).to_have_text("Edit selected (16)")
    button.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Edit 16 tools")


def test_one_finds_out_why_a_tool_is_deferred(open_page: OpenPage) -> None:
    page = open_page("/tools/")
    page.get_by_label("Reason").select_option("server_defer")
    expect(page).to_have_url(re.compile(r"reason=server_defer"))
    first = page.locator("tbody tr").first
    expect(first.locator(".decision")).to_have_text(re.compile(r"deferred\s+its server is set to defer"))
    first.locator("a.name").click()
    decision = page.locator("section", has=page.get_by_role("heading", name="Decision"))
    expect(decision).to_contain_text("its server is set to defer")
    expect(decision).to_contain_text("Otherwise it is still deferred, because the policy always defers")


def test_exports_are_files_of_what_the_filter_matches(open_page: OpenPage) -> None:
    page = open_page("/tools/?server=slack")
    with page.expect_download() as started:
        page.get_by_role("link", name="CSV").click()
    lines = started.value.path().read_text().splitlines()
    assert started.value.suggested_filename == "tools.csv"
    assert lines[0].startswith("name,server,tool")
    assert "mcp__slack__" in lines[1]


def test_second_policy_is_made_looked_through_and_deleted(open_page: OpenPage) -> None:
    page = open_page("/policies/")
    page.get_by_role("link", name="New policy").click()
    page.get_by_label("Name").fill("eager")
    page.get_by_role("button", name="Create policy").click()
    page.get_by_label("Mode").select_option("off")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("eager")
    page.goto("/")
    page.get_by_label("Under the policy").select_option("eager")
    page.wait_for_url("**/?policy=eager")
    expect(page.locator(".measure", has_text="Saved").locator(".value")).to_have_text(
        "0%", timeout=FOLLOWS_WITHIN_MS
    )
    page.goto("/policies/eager/")
    page.locator("summary", has_text="Delete").click()
    page.get_by_label("Type eager to delete it").fill("eager")
    page.get_by_role("button", name="Delete the policy").click()
    expect(page.get_by_role("link", name="eager")).to_have_count(0)


def test_what_an_agent_gets_is_read_in_each_form_and_copied(open_page: OpenPage) -> None:
    page = open_page("/policies/default/", permissions=["clipboard-read", "clipboard-write"])
    page.get_by_role("link", name="See what an agent gets").click()
    page.evaluate("window.wasNotReloaded = true")
    for form in ("Anthropic, hosted BM25", "Anthropic, hosted regex", "OpenAI, hosted", "Stubs", "Anthropic"):
        page.get_by_role("navigation", name="Format").get_by_role("link", name=form, exact=True).click()
        expect(page.locator(".tabs [aria-current]")).to_have_text(form)
        expect(page.locator(".tabs [aria-current]")).to_be_focused()
    assert page.evaluate("window.wasNotReloaded") is True
    expect(page.locator("#tools-text")).to_contain_text('"defer_loading": true')
    page.get_by_role("button", name="Copy all").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = json.loads(page.evaluate("navigator.clipboard.readText()"))
    assert copied[0]["name"] == "search_tools"
    assert len(copied) > 100
    with page.expect_download() as started:
        page.get_by_role("link", name="Whole answer").click()
    whole = json.loads(started.value.path().read_text())
    assert whole["tools"] == copied
    assert page.locator("#prompt-text").inner_text() == whole["prompt"]
    page.go_back()
    expect(page.locator(".tabs [aria-current]")).to_have_text("Stubs")


def test_row_of_models_is_added_obeyed_and_taken_back(open_page: OpenPage) -> None:
    page = open_page("/models/")
    page.keyboard.press("/")
    page.keyboard.type("house-model-7")
    expect(page.locator("#model-table")).to_contain_text("No row fits house-model-7")
    page.get_by_label("Models", exact=True).fill("house-model-*")
    page.get_by_label("Hosted search").check()
    page.get_by_label("Context window").fill("1,000,000")
    page.get_by_role("button", name="Add").click()
    toast = page.get_by_role("status").locator("[data-toast]")
    expect(toast).to_contain_text("Saved the row for house-model-*")
    expect(page.locator("tbody tr", has_text="house-model-*")).to_contain_text("1,000,000")
    page.goto("/policies/default/agent/?format=auto&model=house-model-7")
    expect(page.get_by_text("searched by its provider")).to_be_visible()
    page.goto("/changes/?subject=model")
    page.locator("tbody tr", has_text="house-model-*").get_by_role("button", name="Undo").click()
    expect(toast).to_contain_text("Undone")
    page.goto("/models/")
    expect(page.locator("tbody tr", has_text="house-model-*")).to_have_count(0)
