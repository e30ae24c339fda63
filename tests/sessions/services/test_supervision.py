"""Changes that a person may make to an agent's session, and their records."""

from datetime import timedelta

import pytest
from django.utils import timezone

from catalog.access.actors import Actor
from catalog.access.roles import Role
from catalog.domain.errors import NotAllowed
from catalog.models import Change
from sessions.models import AgentSession, LoadedTool, SessionEvent
from sessions.services import supervision
from sessions.services.supervision import delete_session, reset_session, unload_tools
from tests.harness.rows import make_key, make_session
from tests.sessions.conftest import Recording

pytestmark = pytest.mark.django_db

EDITOR, ADMIN = Actor("erin", Role.EDITOR), Actor("ada", Role.ADMIN)


@pytest.fixture
def session() -> AgentSession:
    made = make_session(key=make_key(name="coder"), external_id="chat-7", turn=4, context_used=900)
    for position, name in enumerate(("first", "second", "third")):
        LoadedTool.objects.create(session=made, name=name, position=position, loaded_turn=1, used_turn=2)
    return made


def loaded_names(session: AgentSession) -> list[str]:
    return list(session.loaded_tools.values_list("name", flat=True))


def test_reset_drops_what_was_loaded_and_says_who_did_it(session: AgentSession, recording: Recording) -> None:
    with recording():
        after = reset_session(session=session, actor=EDITOR)
    assert loaded_names(session) == []
    assert (after.context_used, after.version) == (0, session.version + 1)
    change, event = Change.objects.get(), SessionEvent.objects.get()
    assert (change.actor, change.subject, change.action) == ("erin", "session", "changed")
    assert change.name == f"chat-7 ({session.pk})"
    assert change.before == {"context_used": 900, "loaded": ["first", "second", "third"]}
    assert change.after == {"context_used": 0, "loaded": []}
    assert (event.kind, event.by, event.unloaded) == ("reset", "erin", ["first", "second", "third"])


def test_one_tool_is_unloaded_or_all(session: AgentSession) -> None:
    assert unload_tools(session=session, names=["second"], actor=EDITOR) == 1
    assert loaded_names(session) == ["first", "third"]
    assert unload_tools(session=session, actor=EDITOR) == 2
    assert loaded_names(session) == []
    assert [change.after["loaded"] for change in Change.objects.order_by("pk")] == [["first", "third"], []]


def test_unloading_what_is_not_there_is_not_recorded(session: AgentSession) -> None:
    assert unload_tools(session=session, names=["fourth"], actor=EDITOR) == 0
    assert not Change.objects.exists()


def test_long_lists_are_cut_in_the_record(session: AgentSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "MOST_NAMES", 2)
    unload_tools(session=session, actor=EDITOR)
    assert Change.objects.get().before["loaded"] == ["first", "second", "and 1 more"]


def test_deleted_session_is_gone_and_on_record(session: AgentSession) -> None:
    delete_session(session=session, actor=ADMIN)
    assert not AgentSession.objects.exists()
    change = Change.objects.get()
    assert (change.action, change.before["key"], change.before["turn"]) == ("deleted", "coder", 4)


def test_only_the_agent_keeps_its_session_alive(session: AgentSession) -> None:
    long_ago = timezone.now() - timedelta(days=3)
    AgentSession.objects.update(last_seen_at=long_ago)
    expires_at = AgentSession.objects.get().expires_at
    after = reset_session(session=session, actor=EDITOR)
    assert (after.last_seen_at, after.expires_at) == (long_ago, expires_at)


def test_roles_are_asked_for_here_and_nothing_happens_without(session: AgentSession) -> None:
    viewer = Actor("vic", Role.VIEWER)
    with pytest.raises(NotAllowed):
        reset_session(session=session, actor=viewer)
    with pytest.raises(NotAllowed):
        unload_tools(session=session, actor=viewer)
    with pytest.raises(NotAllowed):
        delete_session(session=session, actor=EDITOR)
    assert loaded_names(session) == ["first", "second", "third"]
    assert not Change.objects.exists()
