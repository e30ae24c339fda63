"""The command palette: pages, servers, tools, policies, sessions and keys by name, and actions on servers.

Every kind is one query with a limit, whatever the size of the catalog.
"""

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db.models import Case, IntegerField, Q, QuerySet, Value, When
from django.db.models.functions import Length
from django.urls import reverse
from django.utils.text import capfirst

from catalog.access.roles import Role
from catalog.console.paging import PAGE_ROWS
from catalog.models import ApiKey, Policy, Server, Tool
from sessions.models import AgentSession
from toolsearch_site.navigation import ENTRIES

QUERY_CHARS = 200
SHOWN_SERVERS = 6
SHOWN_TOOLS = 8
SHOWN_OTHERS = 5
RECENT_SESSIONS = 500  # the sessions seen last, among which a name is looked for
READ_KEYS = 2_000


@dataclass(frozen=True, slots=True)
class Item:
    """One line of the palette. With `fields` it is sent as a form, since it changes something."""

    label: str
    url: str
    icon: str
    detail: str = ""
    fields: tuple[tuple[str, str], ...] | None = None


@dataclass(frozen=True, slots=True)
class Group:
    heading: str
    items: Sequence[Item]


# Pages that are in no menu, each with the least role that may open it.
MORE_PAGES = (
    ("Saved queries", "saved_list", "search", Role.VIEWER),
    ("Account", "account", "user-circle", Role.VIEWER),
    ("Add servers", "server_add", "plus", Role.EDITOR),
    ("New policy", "policy_create", "plus", Role.EDITOR),
)


def find(text: str, role: Role) -> list[Group]:
    """What the words match, best first within its group; without words the pages."""
    words = text[:QUERY_CHARS].lower().replace("\0", "").split()
    pages = Group("Pages", list(_pages(words, role)))
    groups = (pages, *_find_things(words, role)) if words else (pages,)
    return [group for group in groups if group.items]


def _find_things(words: Sequence[str], role: Role) -> Iterator[Group]:
    servers = _find_servers(words)
    if role >= Role.EDITOR:
        yield Group("Actions", list(_asked_actions(words)))
    yield Group("Servers", [_server_item(server) for server in servers])
    if role >= Role.EDITOR and len(servers) == 1:
        yield Group("Actions", list(filter(None, (offer(servers[0]) for offer in ACTIONS.values()))))
    yield Group("Tools", list(_tools(words)))
    yield Group("Policies", list(_policies(words)))
    yield Group("Sessions", list(_sessions(words)))
    if role >= Role.ADMIN:
        yield Group("Keys", list(_keys(words)))


def _pages(words: Sequence[str], role: Role) -> Iterator[Item]:
    listed = [(entry.label, entry.route, entry.icon, entry.least) for entry in ENTRIES]
    for label, route, icon, least in (*listed, *MORE_PAGES):
        if role >= least and all(word in label.lower() for word in words):
            yield Item(label, reverse(route), icon)


def _find_servers(words: Sequence[str]) -> list[Server]:
    found = Server.objects.filter(_having_all(words, "name"))
    columns = ("name", "enabled", "transport", "defer_loading")
    of_status = ("failures", "last_error_code", "last_refreshed_at")
    return list(_best_first(found, words, "name").only(*columns, *of_status)[:SHOWN_SERVERS])


def _server_item(server: Server) -> Item:
    return Item(server.name, server.get_absolute_url(), "server-2", server.status.label)


def _tools(words: Sequence[str]) -> Iterator[Item]:
    """Those that are neither hidden nor gone."""
    listed = Tool.objects.filter(gone_at=None, hidden=False).filter(
        _having_all(words, "qualified_name", "name")
    )
    found = _best_first(listed, words, "name").select_related("server")
    for tool in found.only("name", "qualified_name", "server__name")[:SHOWN_TOOLS]:
        yield Item(tool.name, tool.get_absolute_url(), "tool", tool.server.name)


def _policies(words: Sequence[str]) -> Iterator[Item]:
    found = _best_first(Policy.objects.filter(_having_all(words, "slug")), words, "slug")
    for slug in found.values_list("slug", flat=True)[:SHOWN_OTHERS]:
        yield Item(slug, reverse("policy_detail", args=[slug]), "adjustments")


def _sessions(words: Sequence[str]) -> Iterator[Item]:
    """By name among those seen last, or any by its id."""
    latest = AgentSession.objects.order_by("-last_seen_at").values("pk")[:RECENT_SESSIONS]
    wanted = Q(pk__in=latest) & _having_all(words, "external_id", "model")
    if (session_id := _read_uuid(words)) is not None:
        wanted |= Q(pk=session_id)
    found = AgentSession.objects.filter(wanted).select_related("key").order_by("-last_seen_at")
    for session in found.only("external_id", "model", "last_seen_at", "key__name")[:SHOWN_OTHERS]:
        detail = " · ".join(filter(None, (session.key.name, session.model)))
        yield Item(str(session), session.get_absolute_url(), "messages", detail)


def _keys(words: Sequence[str]) -> Iterator[Item]:
    """Keys that are not revoked, on the page of the list that each is on."""
    keys = ApiKey.objects.filter(revoked_at=None).order_by("name", "pk")
    matching = 0
    for position, (pk, name, prefix) in enumerate(keys.values_list("pk", "name", "prefix")[:READ_KEYS]):
        if all(word in f"{name} tk_{prefix}".lower() for word in words) and matching < SHOWN_OTHERS:
            matching += 1
            page = position // PAGE_ROWS + 1
            address = reverse("key_list") + (f"?page={page}" if page > 1 else "") + f"#key-{pk}"
            yield Item(name, address, "key", f"tk_{prefix}…")


def _asked_actions(words: Sequence[str]) -> Iterator[Item]:
    """For `refresh git` that action on the servers it fits, for `edit def` the policies."""
    verb, named = words[0], words[1:]
    if verb == EDIT:
        for item in _policies(named):
            yield Item(f"Edit {item.label}", f"{item.url}edit/", "pencil", "policy")
    elif verb in ACTIONS:
        yield from filter(None, map(ACTIONS[verb], _find_servers(named)))


def _refresh(server: Server) -> Item | None:
    if server.is_snapshot or not server.enabled:
        return None
    url = reverse("server_refresh", args=[server.address])
    return Item(f"Refresh {server.name}", url, "refresh", "asks the server for its tools", fields=())


def _set_loading(server: Server, *, word: str, label: str, value: bool | None) -> Item | None:
    """Leads to the preview, where the change is made."""
    if server.defer_loading is value:
        return None
    url = reverse("server_loading", args=[server.address], query={"defer": word})
    return Item(f"{label} {server.name}", url, "adjustments", "shows what would change first")


def _set_enabled(server: Server, *, enabled: bool) -> Item | None:
    if server.enabled is enabled:
        return None
    word = "enable" if enabled else "disable"
    url = reverse("server_enabled", args=[server.address])
    fields = (("enabled", "yes" if enabled else "no"),)
    return Item(f"{capfirst(word)} {server.name}", url, "server-2", "can be undone", fields=fields)


EDIT = "edit"
ACTIONS: dict[str, Callable[[Server], Item | None]] = {
    "refresh": _refresh,
    "defer": partial(_set_loading, word="defer", label="Defer", value=True),
    "load": partial(_set_loading, word="load", label="Load", value=False),
    "inherit": partial(_set_loading, word="inherit", label="Inherit loading of", value=None),
    "enable": partial(_set_enabled, enabled=True),
    "disable": partial(_set_enabled, enabled=False),
}


def _having_all(words: Iterable[str], *fields: str) -> Q:
    """Every word is in one of the fields."""
    found = Q()
    for word in words:
        anywhere = Q()
        for field in fields:
            anywhere |= Q(**{f"{field}__icontains": word})
        found &= anywhere
    return found


def _best_first(rows: "QuerySet[Any]", words: Sequence[str], field: str) -> "QuerySet[Any]":
    """The very name first, then names that begin like it, then the shortest of the others."""
    text = " ".join(words)
    rank = Case(
        When(**{f"{field}__iexact": text}, then=Value(0)),
        When(**{f"{field}__istartswith": words[0] if words else ""}, then=Value(1)),
        default=Value(2),
        output_field=IntegerField(),
    )
    return rows.order_by(rank, Length(field), field)


def _read_uuid(words: Sequence[str]) -> uuid.UUID | None:
    try:
        return uuid.UUID("".join(words))
    except ValueError:
        return None
