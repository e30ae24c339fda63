"""A page of the list of sessions."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, OuterRef, Q, Subquery

from catalog.console.paging import Page, cut_page
from catalog.models import ApiKey
from sessions.models import AgentSession, AgentSessionQuerySet, LoadedTool, SessionEvent
from sessions.selectors.own_sessions import Liveness, liveness_of, of_liveness
from sessions.selectors.stamps import stamp_of

MOST_KEYS = 200


@dataclass(frozen=True, slots=True)
class SessionFilter:
    text: str = ""
    liveness: Liveness | None = None
    policy: str = ""
    key_id: int | None = None

    @property
    def is_default(self) -> bool:
        return self == SessionFilter()


@dataclass(frozen=True, slots=True)
class SessionRow:
    """Tokens are those of the session's last event, None where there is none yet."""

    session: AgentSession
    liveness: Liveness
    discovered: int
    tokens_sent: int | None
    tokens_full: int | None

    @property
    def saved_share(self) -> float:
        return 1 - (self.tokens_sent or 0) / self.tokens_full if self.tokens_full else 0.0


def sessions_for_table(wanted: SessionFilter, *, now: datetime, page: str | int = 1) -> Page[SessionRow]:
    """The latest seen first. Counts are made for the rows of this page only."""
    found = cut_page(_matching(wanted, now=now).order_by("-last_seen_at", "-id"), page)
    ids = [session.pk for session in found.rows]
    discovered, tokens = _count_loaded(ids), _read_tokens(ids)
    unknown = (None, None)
    return found.with_rows(
        [
            SessionRow(
                one, liveness_of(one, now=now), discovered.get(one.pk, 0), *tokens.get(one.pk, unknown)
            )
            for one in found.rows
        ]
    )


def stamp_table(page: Page[SessionRow], *, now: datetime) -> str:
    """Differs whenever a row differs, and every minute because of the shown ages."""
    facts = [
        (
            row.session.pk,
            row.session.version,
            row.session.turn,
            row.liveness,
            row.discovered,
            row.tokens_sent,
        )
        for row in page.rows
    ]
    return stamp_of(page.number, page.total, facts, f"{now:%H:%M}")


def keys_to_choose() -> list[ApiKey]:
    return list(ApiKey.objects.only("name", "prefix")[:MOST_KEYS])


def _matching(wanted: SessionFilter, *, now: datetime) -> AgentSessionQuerySet:
    sessions = AgentSession.objects.select_related("key", "policy").defer("builtin_tools")
    if wanted.liveness is not None:
        sessions = of_liveness(sessions, wanted.liveness, now=now)
    if wanted.policy:
        sessions = sessions.filter(policy__slug=wanted.policy)
    if wanted.key_id is not None:
        sessions = sessions.filter(key=wanted.key_id)
    return sessions.filter(_having(wanted.text)) if wanted.text else sessions


def _having(text: str) -> Q:
    named = Q(external_id__icontains=text) | Q(model__icontains=text)
    try:
        return named | Q(pk=uuid.UUID(text))
    except ValueError:
        return named


def _count_loaded(ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, int]:
    counts = LoadedTool.objects.filter(session__in=ids).order_by().values("session").annotate(n=Count("pk"))
    return {row["session"]: row["n"] for row in counts}


def _read_tokens(ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, tuple[int, int]]:
    """Of each session's last event, by index."""
    newest = SessionEvent.objects.filter(session=OuterRef("pk")).order_by("-at", "-pk").values("pk")[:1]
    last = AgentSession.objects.filter(pk__in=ids).order_by().values(newest=Subquery(newest))
    rows = SessionEvent.objects.filter(pk__in=last).values_list("session_id", "tokens_sent", "tokens_full")
    return {session_id: (sent, full) for session_id, sent, full in rows}
