"""As viewer and as editor: what they must not do is not offered, and refused to who asks all the same."""

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import OpenPage
from tests.harness.instance import Instance

PASSWORD = "correct horse battery staple"
MAKE_USERS = f"""
from django.contrib.auth.models import Group, User

for name in ("viewer", "editor"):
    user = User.objects.create_user(name, password="{PASSWORD}")
    user.groups.add(Group.objects.get(name=name))
"""
TOOL = "/tools/mcp__github__create_issue/"
EDITORS_ONLY = {
    "/servers/github/loading/": {"defer": "load"},
    "/servers/github/enabled/": {"enabled": "no"},
    "/servers/workshop/refresh/": {},
    f"{TOOL}loading/": {"loading": "always"},
    f"{TOOL}settings/": {"loading": "always"},
    "/bulk-edit/?all=1": {"loading": "always", "step": "apply"},
    "/policies/default/edit/": {"mode": "off"},
}
ADMINS_ONLY = {
    "/servers/github/delete/": {"confirm": "github"},
    "/policies/default/delete/": {"confirm": "default"},
    "/keys/": {"name": "mine"},
}


@pytest.fixture(scope="module")
def users(instance: Instance) -> None:
    made = instance.manage("shell", "-c", MAKE_USERS)
    assert made.returncode == 0, made.stderr


def sign_in_as(page: Page, name: str) -> None:
    page.get_by_label("User name").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")


def menu_of(page: Page) -> Locator:
    return page.get_by_role("navigation", name="Main", exact=True)


def ask_for(page: Page, address: str, values: dict[str, str]) -> int:
    """What the server answers to a form that the page does not offer, its token included."""
    token = page.evaluate("JSON.parse(document.body.getAttribute('hx-headers'))['X-CSRFToken']")
    headers = {"X-CSRFToken": str(token), "Referer": page.url}
    return page.request.post(address, form=dict(values), headers=headers).status


def expect_nothing_to_change(page: Page, address: str) -> None:
    """No switch, no box to tick, no button in what is shown, the menu and the list's own filter aside."""
    page.goto(address)
    main = page.locator("#main")
    expect(main.get_by_role("heading", level=1)).to_be_visible()
    # Which model's prices a page shows is a choice of this browser alone.
    changing = main.locator("form[method=post]:not([action='/models/choose/'])")
    expect(changing).to_have_count(0)
    expect(main.locator("input[type=checkbox], input[type=radio]")).to_have_count(0)


@pytest.mark.usefixtures("users")
def test_viewer_sees_everything_and_changes_nothing(open_page: OpenPage) -> None:
    page = open_page("/sign-in/", is_signed_in=False)
    sign_in_as(page, "viewer")
    expect(menu_of(page).get_by_role("link", name="Keys")).to_have_count(0)
    for address in ("/servers/", "/servers/github/", "/tools/", TOOL, "/policies/default/"):
        expect_nothing_to_change(page, address)
    for address in ("/servers/", "/policies/", "/policies/default/"):
        page.goto(address)
        expect(page.locator("#main").get_by_role("link", name="Add servers")).to_have_count(0)
        expect(page.locator("#main").get_by_role("link", name="New policy")).to_have_count(0)
        expect(page.locator("#main").get_by_role("link", name="Edit", exact=True)).to_have_count(0)
    page.goto("/changes/")
    expect(page.get_by_role("button", name="Undo")).to_have_count(0)


@pytest.mark.usefixtures("users")
def test_viewer_is_refused(open_page: OpenPage) -> None:
    page = open_page("/sign-in/", is_signed_in=False)
    sign_in_as(page, "viewer")
    answers = {address: ask_for(page, address, values) for address, values in EDITORS_ONLY.items()}
    answers |= {address: ask_for(page, address, values) for address, values in ADMINS_ONLY.items()}
    answers |= {
        address: page.request.get(address).status
        for address in (
            "/add-server/",
            "/bulk-edit/?all=1",
            "/new-policy/",
            "/policies/default/edit/",
            "/keys/",
        )
    }
    assert answers == dict.fromkeys(answers, 403)
    page.goto(TOOL)
    expect(page.locator("#main")).to_contain_text("inherit")


@pytest.mark.usefixtures("users")
def test_editor_edits_but_neither_deletes_nor_gives_keys_nor_runs_commands(open_page: OpenPage) -> None:
    page = open_page("/sign-in/", is_signed_in=False)
    sign_in_as(page, "editor")
    expect(menu_of(page).get_by_role("link", name="Keys")).to_have_count(0)
    page.goto("/servers/github/")
    expect(page.get_by_role("button", name="Disable")).to_be_visible()
    expect(page.locator("summary", has_text="Delete")).to_have_count(0)
    page.goto("/policies/default/")
    expect(page.get_by_role("link", name="Edit", exact=True)).to_be_visible()
    expect(page.locator("summary", has_text="Delete")).to_have_count(0)
    page.goto("/add-server/")
    expect(page.get_by_label("Address")).to_have_count(1)
    expect(page.get_by_label("Command")).to_have_count(0)
    page.goto(TOOL)
    expect(page.get_by_role("button", name="Save")).to_be_visible()
    assert ask_for(page, f"{TOOL}loading/", {"loading": "inherit"}) == 200


@pytest.mark.usefixtures("users")
def test_editor_is_refused_what_admins_do(open_page: OpenPage) -> None:
    page = open_page("/sign-in/", is_signed_in=False)
    sign_in_as(page, "editor")
    answers = {address: ask_for(page, address, values) for address, values in ADMINS_ONLY.items()}
    assert answers == dict.fromkeys(ADMINS_ONLY, 403)
    assert page.request.get("/keys/").status == 403
    page.goto("/add-server/")
    page.get_by_label("Config, as JSON").fill('{"mcpServers": {"shell": {"command": "sh"}}}')
    expect(page.locator("#import-plan")).to_contain_text("can be added by admins only")
    page.goto("/servers/")
    expect(page.get_by_role("link", name="shell", exact=True)).to_have_count(0)
