"""Rules that every page keeps: strict policy, no foreign host, hostile text shown and harmless."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from catalog.access.roles import Role
from catalog.models import SavedQuery
from catalog.models.changes import Subject
from sessions.models import ActivityHour
from tests.harness.pages import broken_rules, signed_in, text_of, visible_text
from tests.harness.rows import (
    make_change,
    make_event,
    make_gateway_client,
    make_key,
    make_lease,
    make_run,
    make_search,
    make_server,
    make_session,
    make_tool,
)

STATIC = Path(settings.BASE_DIR) / "static"
TEMPLATES = Path(settings.BASE_DIR) / "templates"
HOSTILE = "<script>alert(1)</script>\" onload='x' {{ 7*7 }} \u202e\u200b\U000e0041"
PATHS = [
    "/",
    "/servers/",
    "/tools/",
    "/tools/?q=script&state=any&sort=name",
    "/review/",
    "/policies/",
    "/policies/default/",
    "/policies/default/agent/",
    "/policies/default/agent/?format=auto&model=script",
    "/policies/default/edit/",
    "/new-policy/",
    "/add-server/",
    "/imported/?servers=1-9999",
    "/sessions/",
    "/connect/",
    "/gateway/",
    "/console/",
    "/console/?q=script",
    "/console/?q=script&view=rankers",
    "/console/?q=script&view=answer",
    "/console/saved/",
    "/models/",
    "/models/?model=claude-opus-4-5",
    "/keys/",
    "/changes/",
    "/account/",
]
LINE_CHARS = 160
# Names by which scripts and tests find a part.
UNSTYLED = {"edit-conflict", "why"}
# What a viewer cannot open at all.
EDITED = {"/keys/", "/policies/default/edit/", "/new-policy/", "/add-server/"}


@pytest.fixture
def hostile_paths() -> list[str]:
    """A catalog in which every text that a server or a person can set is an attack."""
    server = make_server(
        name=HOSTILE,
        transport="stdio",
        command=HOSTILE,
        title=HOSTILE,
        description=HOSTILE,
        instructions=HOSTILE,
        failures=1,
        last_error=HOSTILE,
        stderr_tail=HOSTILE,
    )
    tool = make_tool(
        server=server,
        name=HOSTILE,
        title=HOSTILE,
        description=HOSTILE,
        input_schema={
            "properties": {
                HOSTILE: {"type": HOSTILE, "description": HOSTILE, "enum": [HOSTILE], "default": HOSTILE}
            }
        },
        annotations={HOSTILE: HOSTILE},
        keywords=[HOSTILE],
    )
    make_run(server=server, error_code="x", error=HOSTILE, rejected=[{"name": HOSTILE, "why": HOSTILE}])
    session = make_session(
        key=make_key(name=HOSTILE),
        external_id=HOSTILE,
        model=HOSTILE,
        visible=[HOSTILE],
        turn_visible=[HOSTILE],
    )
    make_event(session, by=HOSTILE, loaded=[HOSTILE], unloaded=[HOSTILE], loaded_count=1, unloaded_count=1)
    make_search(session, outcome="no_match", query=HOSTILE, hits=[[HOSTILE, 1]])
    ActivityHour.objects.create(hour=timezone.now().replace(minute=0, second=0, microsecond=0), misses=1)
    make_gateway_client(key=session.key, name=HOSTILE, version=HOSTILE)
    make_lease(server=server, key=session.key)
    make_change(actor=HOSTILE, name=HOSTILE, before={HOSTILE: HOSTILE}, after={HOSTILE: [HOSTILE]})
    make_change(actor=HOSTILE, name=tool.qualified_name, subject=Subject.TOOL, after={HOSTILE: HOSTILE})
    SavedQuery.objects.create(policy=session.policy, query=HOSTILE, expected=[tool.qualified_name])
    return [*PATHS, session.get_absolute_url(), server.get_absolute_url(), tool.get_absolute_url()]


@pytest.mark.django_db
class TestEveryPage:
    def test_keeps_the_policy_with_hostile_text(self, hostile_paths: list[str]) -> None:
        client = signed_in(Role.ADMIN)
        for path in hostile_paths:
            response = client.get(path)
            assert response.status_code == 200, path
            assert not broken_rules(response), path
            assert "<script>alert" not in text_of(response), path

    def test_shows_what_would_not_be_seen(self, hostile_paths: list[str]) -> None:
        client = signed_in(Role.ADMIN)
        shown = 0
        for path in hostile_paths:
            page = text_of(client.get(path))
            text = re.sub(r"<(script|title|textarea)\b.*?</\1>|<[^>]*>", "", page, flags=re.DOTALL)
            shown += text.count("\\u{202e}")
            assert "\u202e" not in text, path
            assert "\U000e0041" not in text, path
        assert shown > 20

    def test_has_a_title_one_main_and_its_place_in_the_menu(self) -> None:
        client = signed_in(Role.ADMIN)
        for path in PATHS:
            page = text_of(client.get(path))
            assert re.search(r"<title>\w[^<]* · toolsearch</title>", page), path
            assert page.count("<main") == 1, path
            assert page.count("<h1") == 1, path
            assert page.count('aria-current="page"') == (0 if path == "/account/" else 2), path

    def test_cannot_be_framed_or_sniffed(self) -> None:
        response = signed_in(Role.ADMIN).get("/")
        assert response.headers["X-Frame-Options"] == "DENY"
        assert response.headers["X-Content-Type-Options"] == "nosniff"

    def test_sign_in_page_keeps_the_rules(self, client: Client) -> None:
        assert not broken_rules(client.get("/sign-in/"))

    @pytest.mark.parametrize(
        ("role", "sees_keys"), [(Role.VIEWER, False), (Role.EDITOR, False), (Role.ADMIN, True)]
    )
    def test_menu_offers_keys_to_admins_only(self, role: Role, sees_keys: bool) -> None:
        page = signed_in(role).get("/servers/")
        labels = ["Overview", "Servers", "Tools", "Policies", "Sessions", "Test console", "Changes"]
        assert all(label in visible_text(page) for label in labels)
        assert ('href="/keys/"' in text_of(page)) is sees_keys

    def test_viewer_is_offered_no_form_that_changes_the_catalog(self) -> None:
        tool = make_tool()
        client = signed_in(Role.VIEWER)
        session = make_session()
        opened = [one.get_absolute_url() for one in (tool, tool.server, session)]
        for path in [*PATHS, *opened]:
            if path in EDITED:
                continue
            posting = re.findall(r'<form[^>]*method="post"[^>]*action="([^"]+)"', text_of(client.get(path)))
            own = {"/theme/", "/sign-out/", "/account/", "/first-steps/dismiss/"}
            assert set(posting) <= own, path


class TestAssets:
    def test_every_icon_named_is_in_the_sprite(self) -> None:
        sprite = (STATIC / "vendor/tabler-icons/sprite.svg").read_text()
        there = set(re.findall(r'<symbol id="([\w-]+)"', sprite))
        templates = "\n".join(path.read_text() for path in TEMPLATES.rglob("*.html"))
        navigation = (Path(settings.BASE_DIR) / "toolsearch_site/navigation.py").read_text()
        named = set(re.findall(r'{% icon "([\w-]+)"', templates))
        named |= set(re.findall(r'Entry\("[^"]+", "\w+", "([\w-]+)"', navigation))
        assert named
        assert named - there == set()
        assert there - named == set(), "icons that nothing shows"

    def test_scripts_need_no_eval_and_name_no_other_host(self) -> None:
        for path in STATIC.rglob("*.js"):
            assert not re.search(r"\bnew Function\b|\beval\(", path.read_text()), path.name

    def test_styles_load_nothing_from_elsewhere(self) -> None:
        for path in STATIC.rglob("*.css"):
            text = path.read_text()
            assert "sourceMappingURL" not in text, path.name
            addresses = re.findall(r"url\(\s*[\"']?([^\"')]+)", text)
            assert all(address.startswith(("data:", "../vendor/")) for address in addresses), path.name

    def test_scripts_are_modules_without_globals(self) -> None:
        for path in (STATIC / "js").glob("*.js"):
            assert not re.search(r"\bwindow\.\w+ = |\bglobalThis\b", path.read_text()), path.name
        for path in TEMPLATES.rglob("*.html"):
            ours = re.findall(r"<script [^>]*static '(?!ninja/)[^>]*>", path.read_text())
            assert all('type="module"' in tag for tag in ours), path.name

    def test_every_stylesheet_is_in_the_one_that_is_served(self) -> None:
        imported = re.findall(r'^@import "([^"]+)"', (STATIC / "css/console.css").read_text(), re.MULTILINE)
        there = {path.name for path in (STATIC / "css").glob("*.css")} - {"console.css"}
        assert len(imported) == len(set(imported))
        assert set(imported) == there | {"../vendor/tabler/tabler.min.css"}

    def test_a_class_is_styled_or_known_to_be_only_a_name(self) -> None:
        """A class of Tabler's that a page uses for the first time comes with `make vendor`."""
        styles = "\n".join(path.read_text() for path in STATIC.rglob("*.css"))
        styled = set(re.findall(r"\.([a-zA-Z][\w-]*)", styles))
        used: set[str] = set()
        for path in TEMPLATES.rglob("*.html"):
            for value in re.findall(r'\bclass="((?:{%.*?%}|{{.*?}}|[^"])*)"', path.read_text()):
                used |= set(re.sub(r"{%.*?%}|{{.*?}}", " ", value).split())
        assert used - styled == UNSTYLED

    def test_no_template_line_is_too_long_to_read(self) -> None:
        for path in TEMPLATES.rglob("*.html"):
            long = [n for n, line in enumerate(path.read_text().splitlines(), 1) if len(line) > LINE_CHARS]
            assert not long, f"{path.relative_to(TEMPLATES)}: {long}"

    def test_every_table_has_a_caption(self) -> None:
        for path in TEMPLATES.rglob("*.html"):
            text = path.read_text()
            tables = re.findall(r"<table\b", text)
            assert len(re.findall(r"<table\b[^>]*>\s*<caption\b", text)) == len(tables), path

    def test_only_short_lines_are_read_out_as_they_change(self) -> None:
        live = {path.name for path in TEMPLATES.rglob("*.html") if "aria-live" in path.read_text()}
        assert live == {"_toasts.html", "base.html"}

    def test_templates_have_no_inline_style_or_script(self) -> None:
        for path in TEMPLATES.rglob("*.html"):
            text = path.read_text()
            assert not re.search(
                r"\sstyle=|\son\w+=|<style|<script>|mark_safe|\|safe\b|autoescape off", text
            ), path
