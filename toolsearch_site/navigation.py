"""What every page of the console knows: the main menu, the open entry, the reader's role and theme."""

from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from django.urls import reverse

from catalog.access import Role, role_of

THEME_COOKIE = "theme"
THEMES = ("light", "dark", "system")


@dataclass(frozen=True, slots=True)
class Entry:
    label: str
    route: str
    icon: str
    section: str
    least: Role = Role.VIEWER

    @property
    def url(self) -> str:
        return reverse(self.route)


ENTRIES = (
    Entry("Overview", "overview", "layout-dashboard", "overview"),
    Entry("Servers", "server_list", "server-2", "servers"),
    Entry("Tools", "tool_list", "tool", "tools"),
    Entry("Policies", "policy_list", "adjustments", "policies"),
    Entry("Sessions", "session_list", "messages", "sessions"),
    Entry("Test console", "console", "search", "console"),
    Entry("Keys", "key_list", "key", "keys", least=Role.ADMIN),
    Entry("Changes", "change_list", "history", "changes"),
)


def navigation(request: HttpRequest) -> dict[str, object]:
    """Context for every page; the open section is the first part of the path."""
    role = role_of(getattr(request, "user", AnonymousUser()))
    return {
        "navigation": [entry for entry in ENTRIES if role >= entry.least],
        "section": request.path.strip("/").partition("/")[0] or "overview",
        "role": role.group,
        "can_edit": role >= Role.EDITOR,
        "is_admin": role >= Role.ADMIN,
        "theme": chosen_theme(request),
    }


def chosen_theme(request: HttpRequest) -> str:
    theme = request.COOKIES.get(THEME_COOKIE, "")
    return theme if theme in THEMES else "system"
