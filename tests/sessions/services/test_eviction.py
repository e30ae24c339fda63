"""Limits of sessions: small ones hold at every moment, large ones without counting at every creation."""

from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from catalog.models import ApiKey, Policy
from sessions import tasks
from sessions.models import AgentSession, Call, GatewayProcess, KeptResult
from sessions.services import eviction
from sessions.services.lifecycle import SessionFields, create_session
from tests.harness.rows import make_call, make_key, make_session

pytestmark = pytest.mark.django_db


@pytest.fixture
def key() -> ApiKey:
    return make_key()


def set_limit(policy: Policy, most: int) -> None:
    Policy.objects.filter(pk=policy.pk).update(max_sessions=most)
    policy.refresh_from_db()


def create(key: ApiKey) -> AgentSession:
    policy = Policy.objects.get(pk=key.policy_id)
    return create_session(key_id=key.pk, policy=policy, fields=SessionFields()).session


def add_idle(key: ApiKey, count: int) -> None:
    now = timezone.now()
    AgentSession.objects.bulk_create(
        AgentSession(
            key=key,
            policy_id=key.policy_id,
            last_seen_at=now - timedelta(hours=1),
            expires_at=now + timedelta(1),
        )
        for _ in range(count)
    )


def statements_of_one(key: ApiKey) -> list[str]:
    with CaptureQueriesContext(connection) as made:
        create(key)
    return [query["sql"] for query in made.captured_queries]


class TestSmallLimit:
    def test_holds_at_every_moment(self, key: ApiKey) -> None:
        set_limit(key.policy, 3)
        for number in range(6):
            create(key)
            assert AgentSession.objects.count() == min(number + 1, 3)

    def test_counts_no_further_than_it_must(self, key: ApiKey) -> None:
        set_limit(key.policy, 3)
        counts = [sql for sql in statements_of_one(key) if "COUNT(" in sql]
        assert len(counts) == 1
        assert f"LIMIT {3 + eviction.BATCH_ROWS}" in counts[0]

    def test_that_was_lowered_holds_with_the_next_session(
        self, key: ApiKey, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(eviction, "BATCH_ROWS", 4)
        add_idle(key, 11)
        set_limit(key.policy, 2)
        new = create(key)
        assert AgentSession.objects.count() == 2
        assert AgentSession.objects.filter(pk=new.pk).exists()

    def test_of_a_key_leaves_other_keys_alone(self, key: ApiKey) -> None:
        few = make_key(max_sessions=1)
        other = create(key)
        create(few)
        last = create(few)
        assert set(AgentSession.objects.values_list("pk", flat=True)) == {other.pk, last.pk}


class TestLargeLimit:
    def test_creation_counts_nothing_however_many_there_are(self, key: ApiKey) -> None:
        alone = statements_of_one(key)
        add_idle(key, 3_000)
        among_many = statements_of_one(key)
        assert len(among_many) == len(alone)
        assert [sql for sql in among_many if "COUNT(" in sql] == []

    def test_is_counted_again_after_a_share_of_it_and_then_holds(self, key: ApiKey) -> None:
        set_limit(key.policy, 1_000)
        add_idle(key, 1_000)
        for _ in range(9):
            create(key)
        assert AgentSession.objects.count() == 1_009
        create(key)
        assert AgentSession.objects.count() == 1_000

    def test_is_counted_after_every_hundredth_of_it(self, key: ApiKey) -> None:
        set_limit(key.policy, 1_000)
        made = [any("COUNT(" in sql for sql in statements_of_one(key)) for _ in range(35)]
        assert [number for number, counted in enumerate(made, start=1) if counted] == [10, 20, 30]

    def test_task_ends_what_is_past_any_limit(
        self, key: ApiKey, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(eviction, "BATCH_ROWS", 4)
        add_idle(key, 12)
        few = make_key(max_sessions=2)
        add_idle(few, 5)
        fresh = make_session(key=key)
        set_limit(key.policy, 10)
        tasks.expire_sessions()
        assert AgentSession.objects.filter(key=few).count() <= 2
        assert AgentSession.objects.count() == 10
        settings.MAX_SESSIONS = 1
        tasks.expire_sessions()
        assert list(AgentSession.objects.values_list("pk", flat=True)) == [fresh.pk]


def test_calls_go_when_searches_do(settings: LazySettings) -> None:
    now = timezone.now()
    settings.KEEP_SEARCHES_DAYS = 3
    kept = make_call(at=now - timedelta(days=2))
    for days in (4, 400):
        make_call(at=now - timedelta(days=days))
    tasks.prune_searches()
    assert list(Call.objects.all()) == [kept]


def test_what_the_gateway_left_behind_goes_by_the_minute() -> None:
    now = timezone.now()
    key = make_key()
    for age in (0, 20):
        KeptResult.objects.create(
            handle=f"h{age}",
            key=key,
            sealed="x",
            created_at=now - timedelta(minutes=age),
            expires_at=now + timedelta(minutes=15 - age),
        )
        GatewayProcess.objects.create(process=f"p{age}", started_at=now, seen_at=now - timedelta(minutes=age))
    tasks.forget_gateway_rows()
    assert KeptResult.objects.get().pk == "h0"
    assert GatewayProcess.objects.get().pk == "p0"
