"""A session's state, as the REST API gives it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from catalog.domain.choices import Reason
from catalog.domain.errors import NotFound, Unavailable
from sessions.domain.loaded import STORED, Loaded, LoadedTools
from sessions.models import AgentSession, LoadedTool
from sessions.offers import offer_cache
from sessions.offers.offer import Offer
from sessions.offers.plain_sessions import SessionReading
from sessions.offers.tool_lists import ResolvedTools
from sessions.offers.versions import Versions, read_catalog_version, read_versions

ATTEMPTS = 10


@dataclass(frozen=True, slots=True)
class SessionState:
    session: AgentSession
    resolved: ResolvedTools
    loaded: LoadedTools
    lost: Sequence[str] | None = None

    def to_mapping(self) -> dict[str, object]:
        session, offer = self.session, self.resolved.offer
        state: dict[str, object] = {
            "id": str(session.pk),
            "external_id": session.external_id,
            "policy": offer.policy.slug,
            "model": session.model or None,
            "active": offer.is_active,
            "turn": session.turn,
            "context_window": offer_cache.window_of(session, offer.policy),
            "context_used": session.context_used,
            "version": session.version,
            "counts": self.resolved.counts,
            "tokens": self.resolved.tokens(),
            "loaded": self._list_loaded(),
            "deferred_by_server": self.resolved.deferred_by_server,
            "created_at": _write_time(session.created_at),
            "last_seen_at": _write_time(session.last_seen_at),
            "expires_at": _write_time(session.expires_at),
        }
        return state if self.lost is None else {**state, "lost": list(self.lost)}

    def _list_loaded(self) -> list[Mapping[str, object]]:
        turns = {tool.name: tool.loaded_turn for tool in self.loaded}
        by_rule = [(tool, str(tool.reason), 0) for tool in self.resolved.offer.always]
        by_search = [(tool, str(Reason.DISCOVERED), turns[tool.name]) for tool in self.resolved.discovered]
        return [
            {"name": tool.name, "server": tool.text.server, "reason": reason, "turn": turn}
            for tool, reason, turn in (*by_rule, *by_search)
        ]


def read_session_state(session: AgentSession, *, lost: Sequence[str] | None = None) -> SessionState:
    session, loaded = read_together(session)
    return SessionState(session, resolve_tools(session, loaded), loaded, lost)


def resolve_tools(
    session: AgentSession, loaded: LoadedTools, versions: Versions | None = None
) -> ResolvedTools:
    return resolve_in_offer(offer_cache.offer_of_session(session, versions), loaded)


def resolve_in_offer(offer: Offer, loaded: LoadedTools) -> ResolvedTools:
    """Resolve the loaded tools in an offer. One that is not offered any more, or loads by a rule now, is not
    discovered.
    """
    find = offer.by_name.get
    found = [find(tool.name) for tool in loaded]
    return ResolvedTools(offer, tuple([tool for tool in found if tool is not None and tool.is_deferred]))


def read_together(session: AgentSession) -> tuple[AgentSession, LoadedTools]:
    """The session and its loaded tools at one version, read again where it changed meanwhile."""
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


def read_for_search(session: AgentSession) -> SessionReading:
    versions = read_versions(session.policy_id)
    return SessionReading(session, read_loaded(session), versions, read_catalog_version())


def read_loaded(session: AgentSession) -> LoadedTools:
    rows = LoadedTool.objects.filter(session=session).order_by("position").values_list(*STORED)
    return tuple(Loaded(*row) for row in rows)


def _write_time(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
