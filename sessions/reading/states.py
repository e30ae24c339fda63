"""A session's state, as agents read it and as `/tool-search status` shows it."""

import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from catalog.domain.choices import Reason
from catalog.domain.errors import NotFound, Unavailable
from sessions.domain.loaded import STORED, Loaded, LoadedTools
from sessions.models import AgentSession, LoadedTool
from sessions.reading import offers
from sessions.reading.offer import Offer
from sessions.reading.tool_lists import Standing
from sessions.reading.versions import Versions, read_versions

ATTEMPTS = 10


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
            "context_window": session.context_window or offer.policy.context_window,
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


def read_state(session: AgentSession, *, lost: Sequence[str] | None = None) -> SessionState:
    session, loaded = read_together(session)
    return SessionState(session, stand(session, loaded), loaded, lost)


def read_states(sessions: Sequence[AgentSession]) -> list[SessionState]:
    """Many at once: one read for what is loaded, one for each policy's versions."""
    policies = {session.policy_id for session in sessions}
    versions = {policy_id: read_versions(policy_id) for policy_id in policies}
    loaded: dict[uuid.UUID, list[Loaded]] = defaultdict(list)
    rows = LoadedTool.objects.filter(session__in=sessions).order_by("position")
    for row in rows:
        loaded[row.session_id].append(Loaded(row.name, row.loaded_turn, row.used_turn, row.used_order))
    return [
        SessionState(one, stand(one, tuple(loaded[one.pk]), versions[one.policy_id]), tuple(loaded[one.pk]))
        for one in sessions
    ]


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
