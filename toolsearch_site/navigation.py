"""Template context of every console page: menu, open entry, the user's role, theme and priced model."""

from dataclasses import dataclass
from functools import partial

from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import SimpleLazyObject

from catalog.access.roles import Role, role_of
from catalog.selectors.models import choose_prices
from catalog.views.models import PRICED_MODEL_COOKIE

THEME_COOKIE = "theme"
THEMES = ("light", "dark", "system")


@dataclass(frozen=True, slots=True)
class MenuEntry:
    label: str
    route: str
    icon: str
    section: str
    least: Role = Role.VIEWER
    shortcut: str = ""  # the key that leads there after `g`
    count_route: str = ""  # gives the number beside it, asked for when it can be seen

    @property
    def url(self) -> str:
        return reverse(self.route)

    @property
    def count_url(self) -> str:
        return reverse(self.count_route) if self.count_route else ""


ENTRIES = (
    MenuEntry("Overview", "overview", "layout-dashboard", "overview", shortcut="o"),
    MenuEntry("Servers", "server_list", "server-2", "servers", shortcut="s"),
    MenuEntry("Tools", "tool_list", "tool", "tools", shortcut="t"),
    MenuEntry("Review", "review", "shield-check", "review", shortcut="r", count_route="review_count"),
    MenuEntry("Policies", "policy_list", "adjustments", "policies", shortcut="p"),
    MenuEntry("Sessions", "session_list", "messages", "sessions", shortcut="e"),
    MenuEntry("Calls", "call_list", "corner-down-right", "calls", shortcut="l"),
    MenuEntry("Connect an agent", "connect", "player-play", "connect", shortcut="a"),
    MenuEntry("Gateway", "gateway", "plug-connected", "gateway", shortcut="w"),
    MenuEntry("Test console", "console", "search", "console", shortcut="c"),
    MenuEntry("Models", "model_list", "cpu", "models", shortcut="m"),
    MenuEntry("Keys", "key_list", "key", "keys", least=Role.ADMIN, shortcut="k"),
    MenuEntry("Changes", "change_list", "history", "changes", shortcut="h"),
    MenuEntry("System", "system", "activity", "system", least=Role.ADMIN, shortcut="y"),
)


def navigation(request: HttpRequest) -> dict[str, object]:
    """Context processor; the open section is the first part of the path."""
    role = role_of(getattr(request, "user", AnonymousUser()))
    return {
        "navigation": [entry for entry in ENTRIES if role >= entry.least],
        "section": request.path.strip("/").partition("/")[0] or "overview",
        "role": role.group,
        "can_edit": role >= Role.EDITOR,
        "is_admin": role >= Role.ADMIN,
        "theme": chosen_theme(request),
        "priced": SimpleLazyObject(partial(choose_prices, request.COOKIES.get(PRICED_MODEL_COOKIE, ""))),
        # What error pages extend: the console with its menu for those who may use it.
        "frame": "base.html" if role > Role.NONE else "alone.html",
    }


def chosen_theme(request: HttpRequest) -> str:
    theme = request.COOKIES.get(THEME_COOKIE, "")
    return theme if theme in THEMES else "system"
