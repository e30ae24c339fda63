"""The last use of a key is written behind the answers, once a minute, and survives an outage."""

import pytest
from django.db import OperationalError

from catalog.access import key_uses
from catalog.models import ApiKey
from tests.harness.clocks import set_clock
from tests.harness.rows import make_key
from tests.sessions.api.calling import make_agent

pytestmark = pytest.mark.django_db


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
        key_uses.enqueue(key.pk)
        key_uses.flush()
        uses.append(ApiKey.objects.get(pk=key.pk).last_used_at)
    assert uses[0] == uses[1] != uses[2]


def test_use_is_kept_while_the_database_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = make_key(), make_key()

    def fail(*_: object) -> None:
        raise OperationalError("the server closed the connection")

    key_uses.enqueue(first.pk)
    with monkeypatch.context() as away:
        away.setattr(key_uses.KeyUseBuffer, "_write", fail)
        with pytest.raises(OperationalError):
            key_uses.flush()
    key_uses.enqueue(second.pk)
    key_uses.flush()
    assert not ApiKey.objects.filter(last_used_at=None).exists()
