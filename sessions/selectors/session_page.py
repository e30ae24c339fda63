"""One session for its page: state, timeline, tokens, and whether any of that has changed."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery

from catalog.domain.choices import Reason
from catalog.domain.errors import NotFound
from catalog.domain.sizes import tokens_of
from sessions.models import AgentSession, SearchEvent, SessionEvent
from sessions.offers.known_models import find_window
from sessions.offers.offer import Offer, OfferedTool
from sessions.offers.offer_cache import window_of
from sessions.offers.states import read_loaded, resolve_tools
from sessions.offers.versions import Versions, read_versions
from sessions.selectors.own_sessions import Liveness, liveness_of
from sessions.selectors.stamps import age_shown, stamp_of
from sessions.selectors.timeline import Place, Timeline, read_timeline
from sessions.selectors.token_history import TokenHistory, read_token_history

TOOLS_SHOWN = 100
SERVERS_SHOWN = 12
NO_SUCH_SESSION = "There is no such session. It may have expired, or been deleted."


@dataclass(frozen=True, slots=True)
class Watched:
    """A session and the versions by which its page is seen to have changed: two short reads."""

    session: AgentSession
    versions: Versions
    last_event: int | None
    last_search: int | None
    now: datetime

    @property
    def liveness(self) -> Liveness:
        return liveness_of(self.session, now=self.now)

    @property
    def stamp(self) -> str:
        session = self.session
        return stamp_of(
            session.version,
            session.turn,
            session.context_used,
            find_window(session.model),
            self.versions,
            self.last_event,
            self.last_search,
            self.liveness,
            age_shown(session.last_seen_at, now=self.now),
        )


@dataclass(frozen=True, slots=True)
class DiscoveredTool:
    tool: OfferedTool
    loaded_turn: int
    used_turn: int

    @property
    def tokens(self) -> int:
        return tokens_of(self.tool.text.chars)

    @property
    def has_page(self) -> bool:
        """False for a tool that the session brought along."""
        return self.tool.text.id > 0


@dataclass(frozen=True, slots=True)
class RuleShare:
    """How many tools one rule loads."""

    reason: Reason
    tools: int
    tokens: int


@dataclass(frozen=True, slots=True)
class SessionPage:
    """`absent` are loaded tools that are not offered now: hidden, gone, or loaded by a rule since."""

    watched: Watched
    offer: Offer
    counts: Mapping[str, int]
    tokens: Mapping[str, int]
    discovered: Sequence[DiscoveredTool]
    absent: Sequence[str]
    rules: Sequence[RuleShare]
    deferred_servers: Sequence[tuple[str, int]]
    token_history: TokenHistory
    timeline: Timeline

    @property
    def context_window(self) -> int:
        return window_of(self.watched.session, self.offer.policy)

    @property
    def context_share(self) -> float:
        return self.watched.session.context_used / self.context_window

    @property
    def full_share(self) -> float:
        return self.tokens["full"] / self.context_window

    @property
    def discovered_tokens(self) -> int:
        return tokens_of(sum(one.tool.text.chars for one in self.discovered))

    @property
    def more_discovered(self) -> int:
        return max(0, len(self.discovered) - TOOLS_SHOWN)

    @property
    def more_servers(self) -> int:
        return max(0, len(self.deferred_servers) - SERVERS_SHOWN)


def find_any_session(session_id: uuid.UUID) -> AgentSession:
    session = AgentSession.objects.select_related("key", "policy").filter(pk=session_id).first()
    if session is None:
        raise NotFound(NO_SUCH_SESSION)
    return session


def watch(session_id: uuid.UUID, *, now: datetime) -> Watched:
    """Raises NotFound. An expired session is found until it is deleted."""
    sessions: QuerySet[Any] = AgentSession.objects.select_related("key", "policy").annotate(
        last_event=Subquery(_newest(SessionEvent.objects.filter(session=OuterRef("pk")))),
        last_search=Subquery(_newest(SearchEvent.objects.filter(session=OuterRef("pk")))),
    )
    session = sessions.filter(pk=session_id).first()
    if session is None:
        raise NotFound(NO_SUCH_SESSION)
    return Watched(session, read_versions(session.policy_id), session.last_event, session.last_search, now)


def read_session_page(watched: Watched, *, before: Place | None = None) -> SessionPage:
    """Everything on the page; `before` shows an older part of the timeline."""
    session = watched.session
    loaded = read_loaded(session)
    resolved = resolve_tools(session, loaded, watched.versions)
    turns = {tool.name: (tool.loaded_turn, tool.used_turn) for tool in loaded}
    discovered = [DiscoveredTool(tool, *turns[tool.name]) for tool in resolved.discovered]
    in_force = {tool.name for tool in resolved.discovered}
    tokens = resolved.tokens()
    return SessionPage(
        watched=watched,
        offer=resolved.offer,
        counts=resolved.counts,
        tokens=tokens,
        discovered=discovered,
        absent=[tool.name for tool in loaded if tool.name not in in_force],
        rules=_share_by_rule(resolved.offer),
        deferred_servers=sorted(resolved.deferred_by_server.items(), key=lambda item: -item[1]),
        token_history=read_token_history(session, tokens),
        timeline=read_timeline(session, before=before),
    )


def _newest(rows: QuerySet[Any]) -> QuerySet[Any]:
    return rows.order_by("-at", "-pk").values("pk")[:1]


def _share_by_rule(offer: Offer) -> list[RuleShare]:
    chars: dict[Reason, list[int]] = {}
    for tool in offer.always:
        chars.setdefault(tool.reason, []).append(tool.text.chars)
    shares = [RuleShare(reason, len(sizes), tokens_of(sum(sizes))) for reason, sizes in chars.items()]
    return sorted(shares, key=lambda share: -share.tokens)
