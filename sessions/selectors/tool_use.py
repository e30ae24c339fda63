"""The sessions that loaded a tool by a search."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from catalog.console.paging import Page, cut_page
from sessions.models import AgentSession, EventKind, LoadedTool, SessionEvent

ROWS = 20
LATELY_ROWS = 5
LATEST_EVENTS = 1000


@dataclass(frozen=True, slots=True)
class Use:
    """`loaded_turn` and `used_turn` are turns of that session."""

    session: AgentSession
    loaded_turn: int
    used_turn: int


@dataclass(frozen=True, slots=True)
class PastUse:
    session: AgentSession
    turn: int
    at: datetime


def sessions_with_tool(name: str, *, now: datetime, page: str | int = 1) -> Page[Use]:
    """Live sessions that have it loaded, by its qualified name; the latest seen first."""
    loaded = LoadedTool.objects.filter(name=name, session__expires_at__gt=now)
    found = cut_page(
        loaded.select_related("session__key", "session__policy").order_by("-session__last_seen_at", "-pk"),
        page,
        size=ROWS,
    )
    return found.with_rows([Use(row.session, row.loaded_turn, row.used_turn) for row in found.rows])


def past_uses(name: str) -> list[PastUse]:
    """Sessions that loaded it lately and have unloaded it; reads only the latest events."""
    latest = SessionEvent.objects.order_by("-at", "-pk").values_list(
        "session_id", "turn", "at", "kind", "loaded"
    )
    loads = {
        session_id: (turn, at)
        for session_id, turn, at, kind, names in reversed(list(latest[:LATEST_EVENTS]))
        if kind == EventKind.LOADED and name in names
    }
    past = AgentSession.objects.filter(pk__in=loads).exclude(loaded_tools__name=name).select_related("key")
    uses = [PastUse(session, *loads[session.pk]) for session in past]
    return sorted(uses, key=lambda use: use.at, reverse=True)[:LATELY_ROWS]


def loaded_names(names: Sequence[str]) -> Iterable[str]:
    """Those that a session has loaded: such a tool keeps its row, so that no other tool gets its name."""
    return LoadedTool.objects.filter(name__in=names).values_list("name", flat=True).distinct()
