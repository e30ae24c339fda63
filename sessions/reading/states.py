"""A session's state, as agents read it and as `/tool-search status` shows it."""

import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from catalog.domain.choices import Reason
from catalog.domain.errors import NotFound, Unavailable
from sessions.domain.loaded import STORED, Loaded, LoadedTools
from sessions.models import AgentSession, LoadedTool
from sessions.reading import offers
from sessions.reading.listing import cursor_after
from sessions.reading.offer import Offer
from sessions.reading.tool_lists import Standing
from sessions.reading.versions import Versions, read_versions

ATTEMPTS = 10
# A page of states ends early past either: loaded tools make it long, and what a session sees of its own is
# decided for it alone.
PAGE_LOADED_TOOLS = 50_000
PAGE_OWN_TOOLS = 500_000


@dataclass(frozen=True, slots=True)
class SessionState:
    session: AgentSession
    standing: Standing
    loaded: LoadedTools
    lost: Sequence[str] | None = None

    def to_mapping(self) -> dict[str, object]:
        session, offer = self.session, self.standing.offer
        state: dict[str, object] = {
            "id": str(session.pk),
            "external_id": session.external_id,
            "policy": offer.policy.slug,
            "model": session.model or None,
            "active": offer.is_active,
            "turn": session.turn,
            "context_window": offers.window_of(session, offer.policy),
            "context_used": session.context_used,
            "version": session.version,
            "counts": self.standing.counts,
            "tokens": self.standing.tokens(),
            "loaded": self._list_loaded(),
            "deferred_by_server": self.standing.deferred_by_server,
            "created_at": _write_time(session.created_at),
            "last_seen_at": _write_time(session.last_seen_at),
            "expires_at": _write_time(session.expires_at),
        }
        return state if self.lost is None else {**state, "lost": list(self.lost)}

    def _list_loaded(self) -> list[Mapping[str, object]]:
        turns = {tool.name: tool.loaded_turn for tool in self.loaded}
        by_rule = [(tool, str(tool.reason), 0) for tool in self.standing.offer.always]
        by_search = [(tool, str(Reason.DISCOVERED), turns[tool.name]) for tool in self.standing.discovered]
        return [
            {"name": tool.name, "server": tool.text.server, "reason": reason, "turn": turn}
            for tool, reason, turn in (*by_rule, *by_search)
        ]


@dataclass(frozen=True, slots=True)
class StatePage:
    items: Sequence[Mapping[str, object]]
    next: str | None


def read_state(session: AgentSession, *, lost: Sequence[str] | None = None) -> SessionState:
    session, loaded = read_together(session)
    return SessionState(session, stand(session, loaded), loaded, lost)


def read_page(batches: Iterable[Sequence[AgentSession]], *, limit: int) -> StatePage:
    """The first states of many: no more than `limit`, and fewer where they are large or much work."""
    items: list[Mapping[str, object]] = []
    loaded_tools = own_tools = 0
    last: AgentSession | None = None
    for state in _read_states(batches):
        is_full = len(items) == limit or loaded_tools > PAGE_LOADED_TOOLS or own_tools > PAGE_OWN_TOOLS
        if last is not None and is_full:
            return StatePage(items, cursor_after(last))
        last, offer = state.session, state.standing.offer
        items.append(state.to_mapping())
        loaded_tools += state.standing.counts["loaded"]
        own_tools += len(offer.tools) if offer.made_of else 0
    return StatePage(items, None)


def _read_states(batches: Iterable[Sequence[AgentSession]]) -> Iterator[SessionState]:
    """One read of each batch for what is loaded, one for each policy's versions."""
    versions: dict[int, Versions] = {}
    for sessions in batches:
        loaded: dict[uuid.UUID, list[Loaded]] = defaultdict(list)
        for row in LoadedTool.objects.filter(session__in=sessions).order_by("position"):
            loaded[row.session_id].append(Loaded(row.name, row.loaded_turn, row.used_turn, row.used_order))
        for one in sessions:
            if one.policy_id not in versions:
                versions[one.policy_id] = read_versions(one.policy_id)
            found = tuple(loaded[one.pk])
            yield SessionState(one, stand(one, found, versions[one.policy_id]), found)


def stand(session: AgentSession, loaded: LoadedTools, versions: Versions | None = None) -> Standing:
    return stand_in(offers.offer_of_session(session, versions), loaded)


def stand_in(offer: Offer, loaded: LoadedTools) -> Standing:
    """A tool that was loaded and is not offered any more, or loads by a rule now, is not discovered."""
    found = (offer.by_name.get(tool.name) for tool in loaded)
    return Standing(offer, tuple(tool for tool in found if tool is not None and tool.is_deferred))


def read_together(session: AgentSession) -> tuple[AgentSession, LoadedTools]:
    """The session and what it has loaded, of one version: where it has changed since, as it is now."""
    with_loaded = AgentSession.objects.filter(pk=session.pk).order_by("loaded_tools__position")
    for _ in range(ATTEMPTS):
        rows = list(with_loaded.values_list("version", *(f"loaded_tools__{field}" for field in STORED)))
        if rows and rows[0][0] == session.version:
            return session, tuple(Loaded(*loaded) for _, *loaded in rows if loaded[0] is not None)
        try:
            session = AgentSession.objects.get(pk=session.pk)
        except AgentSession.DoesNotExist:
            raise NotFound("There is no such session.") from None
    raise Unavailable("the session changes faster than it can be read; try again")


def read_loaded(session: AgentSession) -> LoadedTools:
    rows = LoadedTool.objects.filter(session=session).order_by("position").values_list(*STORED)
    return tuple(Loaded(*row) for row in rows)


def _write_time(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
