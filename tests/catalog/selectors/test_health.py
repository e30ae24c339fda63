"""Health says whether the instance can serve, and what is wrong with each part."""

from datetime import timedelta

import pytest
from django.db import DatabaseError
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from catalog import tasks
from catalog.models import Heartbeat, Job
from catalog.selectors import health
from catalog.services import derived_state

URL = "/api/v1/health"


@pytest.mark.django_db
class TestHealth:
    def test_all_parts_ok(self, client: Client) -> None:
        derived_state.bring_up_to_date()
        tasks.sweep_jobs()
        answer = client.get(URL)
        assert answer.status_code == 200
        parts = answer.json()
        encoder = parts.pop("encoder")
        assert set(parts) == {"status", "database", "index", "worker", "decisions", "disk"}
        assert set(parts.values()) == {"ok"}
        assert (encoder["kind"], encoder["state"], encoder["in_force"]) == ("words", "ok", True)
        assert not encoder["queries_leave"]

    def test_new_instance_serves_but_is_degraded(self, client: Client) -> None:
        answer = client.get(URL)
        assert answer.status_code == 200
        parts = answer.json()
        assert parts.pop("encoder")["in_force"] is False
        assert parts == {
            "status": "degraded",
            "database": "ok",
            "index": "missing",
            "worker": "never seen",
            "decisions": "1 policy behind",
            "disk": "ok",
        }

    def test_worker_of_the_future_is_not_ok(self, client: Client) -> None:
        """Its beat was written before a clock was set back, and would be late only after that hour."""
        Heartbeat.objects.create(part="worker", at=timezone.now() + timedelta(hours=1))
        assert "a clock was set back" in client.get(URL).json()["worker"]

    def test_late_worker_is_named_with_its_age(self, client: Client) -> None:
        Heartbeat.objects.create(part=health.WORKER_PART, at=timezone.now() - timedelta(seconds=90))
        assert client.get(URL).json()["worker"] == "last seen 90 s ago"

    def test_costs_four_queries(self, django_assert_num_queries: DjangoAssertNumQueries) -> None:
        with django_assert_num_queries(4):
            health.read_health()

    def test_sweep_asks_for_a_missing_index(self) -> None:
        tasks.sweep_jobs()
        assert Job.objects.filter(kind="update_index").exists()


def test_unreachable_database_is_503(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(**_: object) -> None:
        raise DatabaseError("connection refused at 10.0.0.1")

    monkeypatch.setattr(Heartbeat.objects, "filter", away)
    answer = client.get(URL)
    assert answer.status_code == 503
    assert int(answer["Retry-After"]) > 0
    assert answer.json()["status"] == "unavailable"
    assert "10.0.0.1" not in answer.content.decode()


def test_sign_of_life_needs_no_database(client: Client) -> None:
    assert client.get("/healthz").content == b"ok\n"
