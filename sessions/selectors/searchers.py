"""The policies and sessions as which a search can be tried."""

import uuid
from dataclasses import dataclass

from django.utils import timezone

from catalog.domain.errors import NotFound
from catalog.models import Policy
from catalog.selectors.policies import choose_policy, policy_slugs
from sessions.models import AgentSession, AgentSessionQuerySet

SESSION_PREFIX = "session:"
OFFERED_SESSIONS = 20

MenuChoice = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Searcher:
    """A policy, and a session of it where one was named."""

    policy: Policy
    session: AgentSession | None = None

    @property
    def value(self) -> str:
        return self.policy.slug if self.session is None else f"{SESSION_PREFIX}{self.session.pk}"


def choose_searcher(value: str) -> Searcher:
    """The policy or session that the link names, else `default`: links to ended sessions must not break."""
    if value.startswith(SESSION_PREFIX):
        session = _find_session(value.removeprefix(SESSION_PREFIX))
        if session is not None:
            return Searcher(session.policy, session)
    policy = choose_policy(value)
    if policy is None:
        raise NotFound("There is no policy to search as.")
    return Searcher(policy)


def list_searchers(chosen: Searcher) -> list[tuple[str, list[MenuChoice]]]:
    """Grouped for a menu; always includes the chosen session."""
    sessions = list(_live().order_by("-last_seen_at", "-id")[:OFFERED_SESSIONS])
    if chosen.session is not None and chosen.session not in sessions:
        sessions.append(chosen.session)
    groups = [("A new session", [(slug, f"As policy {slug}") for slug in policy_slugs()])]
    if sessions:
        choices = [(Searcher(one.policy, one).value, _name(one)) for one in sessions]
        groups.append(("A session as it stands", choices))
    return groups


def _find_session(text: str) -> AgentSession | None:
    try:
        session_id = uuid.UUID(text)
    except ValueError:
        return None
    return _live().filter(pk=session_id).first()


def _live() -> AgentSessionQuerySet:
    return AgentSession.objects.live(now=timezone.now()).select_related("policy", "key")


def _name(session: AgentSession) -> str:
    return f"As {session.external_id or str(session.pk)[:8]} · {session.key.name}, turn {session.turn}"
