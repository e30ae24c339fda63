"""The last use of a key is written behind the answers, once a minute, and survives an outage; with the
program that called and what it called.
"""

import pytest
from django.db import OperationalError

from catalog.access import key_uses
from catalog.models import ApiKey
from tests.harness.clocks import set_clock
from tests.harness.rows import make_key
from tests.sessions.api.calling import make_agent

pytestmark = pytest.mark.django_db
CALL = {"REQUEST_METHOD": "GET", "PATH_INFO": "/api/v1/policies/default/tools"}


def test_is_written_later_and_once_a_minute() -> None:
    agent = make_agent()
    agent.get("/policies/default/tools")
    assert ApiKey.objects.get(pk=agent.key.pk).last_used_at is None
    key_uses.flush()
    first = ApiKey.objects.get(pk=agent.key.pk).last_used_at
    assert first is not None
    agent.get("/policies/default/tools")
    key_uses.flush()
    assert ApiKey.objects.get(pk=agent.key.pk).last_used_at == first


def test_next_minute_is_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    key = make_key()
    now = [1000.0]
    set_clock(monkeypatch, key_uses, monotonic=lambda: now[0])
    uses = []
    for now[0] in (1000.0, 1059.0, 1060.0):
        key_uses.enqueue(key.pk, CALL)
        key_uses.flush()
        uses.append(ApiKey.objects.get(pk=key.pk).last_used_at)
    assert uses[0] == uses[1] != uses[2]


def test_use_is_kept_while_the_database_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = make_key(), make_key()

    def fail(*_: object) -> None:
        raise OperationalError("the server closed the connection")

    key_uses.enqueue(first.pk, CALL)
    with monkeypatch.context() as away:
        away.setattr(key_uses.KeyUseBuffer, "_write", fail)
        with pytest.raises(OperationalError):
            key_uses.flush()
    key_uses.enqueue(second.pk, CALL)
    key_uses.flush()
    assert not ApiKey.objects.filter(last_used_at=None).exists()


def test_who_called_and_what_is_kept_without_ids_and_remarks() -> None:
    agent = make_agent()
    session = agent.begin()
    key_uses.flush()
    assert ApiKey.objects.get().last_call == "POST /sessions"
    key_uses.forget()  # as after a minute
    agent.client.post(
        f"/api/v1{session.path}/search?debug=1",
        {"query": "create issue"},
        content_type="application/json",
        headers={"Authorization": f"Bearer {agent.text}", "User-Agent": "Coder/2.1 (linux; x64)"},
    )
    key_uses.flush()
    key = ApiKey.objects.get()
    assert (key.last_client, key.last_call) == ("Coder/2.1", "POST /sessions/…/search")


@pytest.mark.parametrize(
    ("sent", "kept"),
    [("", ""), ("curl/8.5.0", "curl/8.5.0"), ("x" * 5000, "x" * 100), ("a\x00b\ud800\u202ec", "abc")],
)
def test_hostile_names_of_clients_are_bounded_and_storable(sent: str, kept: str) -> None:
    key = make_key()
    key_uses.enqueue(key.pk, {**CALL, "HTTP_USER_AGENT": sent})
    key_uses.flush()
    assert ApiKey.objects.get(pk=key.pk).last_client == kept
