"""Calls and clients are written behind, bounded, and never lost while the database is away."""

import uuid
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from catalog.domain.limits import CALL_ERROR_CHARS, COUNT, GATEWAY_CLIENTS_OF_A_KEY
from sessions.models import Call, GatewayClient
from sessions.services import calls
from sessions.services.calls import PendingCall
from tests.harness.clocks import set_clock
from tests.harness.rows import make_key

pytestmark = pytest.mark.django_db

NOW = timezone.now()


def make_pending(**values: Any) -> PendingCall:
    return PendingCall(
        **{
            "at": NOW,
            "key_id": None,
            "key_name": "ci",
            "session_id": None,
            "policy": "default",
            "client": "claude-code",
            "revision": "2026-07-28",
            "server": "github",
            "tool": "mcp__github__create_issue",
            "via": "call_tool",
            "outcome": "ok",
            "duration_ms": 12,
            "upstream_ms": 9,
            "request_bytes": 100,
            "result_bytes": 2_000,
            "is_cut": False,
            **values,
        }
    )


def see(
    key_id: int, name: str = "codex", *, at: datetime = NOW, is_call: bool = False, **values: str
) -> None:
    named = {"version": "1", "revision": "2025-06-18", "exposure": "search", **values}
    calls.enqueue_client(key_id=key_id, name=name, at=at, is_call=is_call, **named)


class TestCalls:
    def test_row_holds_what_was_enqueued(self) -> None:
        key = make_key()
        pending = make_pending(
            key_id=key.pk, session_id=uuid.uuid4(), error="no", arguments="{}", result="[]", is_cut=True
        )
        calls.enqueue_call(pending)
        assert not Call.objects.exists()
        calls.flush()
        row = Call.objects.get()
        for field in fields(PendingCall):
            assert getattr(row, field.name) == getattr(pending, field.name), field.name

    def test_call_of_a_key_that_is_gone_keeps_its_name(self) -> None:
        key = make_key()
        calls.enqueue_call(make_pending(key_id=key.pk, key_name=key.name))
        key.delete()
        calls.flush()
        row = Call.objects.get()
        assert (row.key_id, row.key_name) == (None, key.name)

    def test_what_one_call_holds_keeps_no_other_from_being_written(self) -> None:
        calls.enqueue_call(
            make_pending(
                client="x\0\ud800\n" * 200,
                revision="y" * 50,
                tool="z" * 500,
                error="a\0b\n" * 5_000,
                arguments="\ud800\0",
                duration_ms=-5,
                request_bytes=10**12,
                upstream_ms=None,
            )
        )
        calls.enqueue_call(make_pending(tool="mcp__b"))
        calls.flush()
        odd, plain = Call.objects.order_by("pk")
        assert plain.tool == "mcp__b"
        assert set(odd.client) == {"x"}
        assert len(odd.error) == CALL_ERROR_CHARS
        assert odd.error.isprintable()
        assert (odd.duration_ms, odd.request_bytes, odd.upstream_ms) == (0, COUNT, None)
        assert "\0" not in odd.arguments

    def test_nothing_is_lost_while_the_database_is_away(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(_: object) -> None:
            raise OperationalError("away")

        key = make_key()
        with monkeypatch.context() as patched:
            patched.setattr(calls, "insert_calls", refuse)
            for number in range(5):
                calls.enqueue_call(make_pending(duration_ms=number))
                see(key.pk, f"client-{number}", is_call=number == 0)
                with pytest.raises(OperationalError):
                    calls.flush()
        calls.enqueue_call(make_pending(duration_ms=5))
        calls.flush()
        assert list(Call.objects.order_by("pk").values_list("duration_ms", flat=True)) == list(range(6))
        assert GatewayClient.objects.count() == 5
        calls.flush()
        assert Call.objects.count() == 6

    def test_what_waits_is_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(calls, "MOST_ENQUEUED", 3)
        monkeypatch.setattr(calls, "MOST_ENQUEUED_CHARS", 10)
        for _ in range(5):
            calls.enqueue_call(make_pending(arguments="12345", result="6"))
        calls.flush()
        assert list(Call.objects.order_by("pk").values_list("arguments", flat=True)) == ["12345", "", ""]

    def test_hundred_take_as_many_statements_as_one(self) -> None:
        counted = []
        for number in (1, 100):
            key = make_key()
            for _ in range(number):
                calls.enqueue_call(make_pending(key_id=key.pk))
                see(key.pk, is_call=True)
            with CaptureQueriesContext(
                connection,
            ) as queries:
                calls.flush()
            counted.append(len([one for one in queries if not one["sql"].startswith("INSERT INTO")]))
        assert counted[0] == counted[1] <= 5


@pytest.mark.django_db(transaction=True, serialized_rollback=True)
@override_settings(WRITE_BEHIND_SECONDS=0.01)
def test_calls_write_themselves_a_moment_later() -> None:
    calls.enqueue_call(make_pending())
    timer = calls._buffer._timer
    assert timer is not None
    timer.join(20)
    assert Call.objects.exists()


class TestClients:
    def test_new_one_is_listed(self) -> None:
        key = make_key()
        see(key.pk, version="0.169", exposure="native")
        calls.flush()
        row = GatewayClient.objects.get()
        assert (row.key, row.name, row.version, row.revision) == (key, "codex", "0.169", "2025-06-18")
        assert (row.exposure, row.first_seen_at, row.last_seen_at) == ("native", NOW, NOW)
        assert row.last_call_at is None

    def test_one_that_is_known_is_written_once_a_minute(self, monkeypatch: pytest.MonkeyPatch) -> None:
        key, now = make_key(), [0.0]
        set_clock(monkeypatch, calls, monotonic=lambda: now[0])
        for second in (0, 10, 59, 61):
            now[0] = 1_000.0 + second
            see(key.pk, at=NOW + timedelta(seconds=second))
            calls.flush()
            row = GatewayClient.objects.get()
            assert row.last_seen_at == NOW + timedelta(seconds=61 if second == 61 else 0)
            assert row.first_seen_at == NOW

    def test_first_call_of_one_that_listed_is_written_at_once(self) -> None:
        key = make_key()
        see(key.pk)
        calls.flush()
        see(key.pk, at=NOW + timedelta(seconds=2), is_call=True)
        calls.flush()
        assert GatewayClient.objects.get().last_call_at == NOW + timedelta(seconds=2)

    def test_listing_later_leaves_the_last_call(self, monkeypatch: pytest.MonkeyPatch) -> None:
        key, now = make_key(), [0.0]
        set_clock(monkeypatch, calls, monotonic=lambda: now[0])
        see(key.pk, is_call=True)
        calls.flush()
        now[0], later = 100.0, NOW + timedelta(seconds=100)
        see(key.pk, at=later, version="2")
        calls.flush()
        row = GatewayClient.objects.get()
        assert (row.last_call_at, row.last_seen_at, row.version) == (NOW, later, "2")

    def test_longest_unseen_goes(self) -> None:
        key, other = make_key(), make_key()
        see(other.pk, "other", at=NOW - timedelta(days=9))
        for number in range(GATEWAY_CLIENTS_OF_A_KEY + 3):
            see(key.pk, f"client-{number:02}", at=NOW + timedelta(seconds=number))
        calls.flush()
        names = set(GatewayClient.objects.filter(key=key).values_list("name", flat=True))
        assert len(names) == GATEWAY_CLIENTS_OF_A_KEY
        assert names.isdisjoint({"client-00", "client-01", "client-02"})
        assert GatewayClient.objects.filter(key=other).exists()

    def test_odd_names_are_cut_and_printable(self) -> None:
        key = make_key()
        see(key.pk, "a\0\ud800b" * 100, version="1\n2" * 100, revision="r" * 99, exposure="e" * 99)
        see(key.pk, "a\0\ud800b\x07" * 100)
        see(key.pk, "a b")
        calls.flush()
        assert all(name.isprintable() for name in GatewayClient.objects.values_list("name", flat=True))

    def test_two_names_that_read_the_same_are_one_client(self) -> None:
        key = make_key()
        see(key.pk, "co\0dex", is_call=True)
        see(key.pk, "codex", at=NOW + timedelta(seconds=1))
        calls.flush()
        row = GatewayClient.objects.get()
        assert (row.name, row.last_call_at) == ("codex", NOW)

    def test_of_a_key_that_is_gone_are_left_out(self) -> None:
        see(987_654)
        calls.flush()
        assert not GatewayClient.objects.exists()
