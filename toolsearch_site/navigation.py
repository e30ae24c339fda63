"""The console's main menu, and which entry the page being shown belongs to."""

from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import reverse


@dataclass(frozen=True, slots=True)
class Entry:
    label: str
    route: str
    icon: str
    section: str

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
    Entry("Keys", "key_list", "key", "keys"),
    Entry("Changes", "change_list", "history", "changes"),
)


def navigation(request: HttpRequest) -> dict[str, object]:
    """Context for every page: the entries, and the section that is open (the first part of the path)."""
    section = request.path.strip("/").partition("/")[0] or "overview"
    return {"navigation": ENTRIES, "section": section}
