"""The database itself refuses rows that break a rule."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from catalog.models import (
    ApiKey,
    Change,
    Policy,
    RefreshRun,
    SavedQuery,
    SavedResult,
    SavedRun,
    ToolRevision,
    ToolTag,
)
from sessions.models import AgentSession, LoadedTool
from tests.harness.rows import make_policy, make_server, make_tool

pytestmark = pytest.mark.django_db


def _session(**values: Any) -> AgentSession:
    policy = Policy.objects.get(slug="default")
    key, _ = ApiKey.objects.get_or_create(name="k", prefix="p", digest="d", policy=policy)
    now = timezone.now()
    return AgentSession.objects.create(
        key=key, policy=policy, last_seen_at=now, expires_at=now + timedelta(days=1), **values
    )


def _load_twice() -> None:
    session = _session()
    for position in (1, 2):
        LoadedTool.objects.create(session=session, name="a", position=position, loaded_turn=0, used_turn=0)


def _run_backwards() -> None:
    now = timezone.now()
    RefreshRun.objects.create(server=make_server(), started_at=now, finished_at=now - timedelta(seconds=1))


def _save(query: str) -> SavedQuery:
    return SavedQuery.objects.create(policy=Policy.objects.get(slug="default"), query=query, expected=[])


def _run_saved(**values: Any) -> SavedRun:
    state = {"at": timezone.now(), "catalog_version": 1, "policy_version": 1}
    counts = {"queries": 1, "passed": 1, "recall": 1.0}
    return SavedRun.objects.create(
        **{"policy": Policy.objects.get(slug="default"), **state, **counts, **values}
    )


BROKEN: dict[str, Callable[[], object]] = {
    "server of unknown kind": lambda: make_server(kind="robot"),
    "server of unknown transport": lambda: make_server(transport="pigeon"),
    "stdio server without a command": lambda: make_server(transport="stdio"),
    "http server with a command": lambda: make_server(transport="http", url="https://a", command="b"),
    "snapshot with an address": lambda: make_server(url="https://a"),
    "snapshot with secrets": lambda: make_server(sealed="x"),
    "server without a name": lambda: make_server(name=""),
    "two servers of one name": lambda: [make_server(name="a") for _ in range(2)],
    "refresh more often than every ten seconds": lambda: make_server(refresh_interval_seconds=5),
    "tool of unknown loading": lambda: make_tool(loading="never"),
    "tag twice on a tool": lambda: [ToolTag.objects.create(tool=one, name="x") for one in [make_tool()] * 2],
    "revision zero": lambda: ToolRevision.objects.create(
        tool=make_tool(), number=0, digest="d", definition={}, chars=0, seen_at=timezone.now()
    ),
    "run that ends before it starts": _run_backwards,
    "policy of unknown mode": lambda: make_policy(mode="maybe"),
    "policy with no results": lambda: make_policy(max_results=0),
    "policy with too many results": lambda: make_policy(max_results=51),
    "policy with a cutoff past one": lambda: make_policy(score_cutoff=1.5),
    "policy with a meaning floor past one": lambda: make_policy(meaning_floor=1.1),
    "policy with a negative threshold": lambda: make_policy(threshold=-1),
    "policy whose sessions never live": lambda: make_policy(session_ttl=timedelta()),
    "change without an actor": lambda: Change.objects.create(
        actor="", subject="tool", name="a", action="changed"
    ),
    "saved query without words": lambda: _save(""),
    "query saved twice for a policy": lambda: [_save("a") for _ in range(2)],
    "two runs of one state": lambda: [_run_saved() for _ in range(2)],
    "run that passes more than it asks": lambda: _run_saved(passed=2),
    "run that finds more than there is": lambda: _run_saved(recall=1.5),
    "query twice in a run": lambda: [
        SavedResult.objects.create(run=run, saved_query=saved, places={}, passed=True, recall=1)
        for run, saved in [(_run_saved(), _save("a"))] * 2
    ],
    "key with a rate of zero": lambda: ApiKey.objects.create(
        name="k", prefix="p", digest="d", policy=make_policy(), rate_limit_per_minute=0
    ),
    "two sessions of one external id": lambda: [_session(external_id="x") for _ in range(2)],
    "session with no context window at all": lambda: _session(context_window=0),
    "tool loaded twice": _load_twice,
}


@pytest.mark.parametrize("name", BROKEN)
def test_refused_by_the_database(name: str) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        BROKEN[name]()


def test_sessions_without_external_id_are_many() -> None:
    assert _session().pk != _session().pk


def test_policy_default_exists_from_the_start() -> None:
    assert Policy.objects.get(slug="default").mode == "always"


@pytest.mark.django_db(transaction=True, serialized_rollback=True)
@pytest.mark.slow
def test_migrations_reverse_and_come_back() -> None:
    ours = [("catalog", None), ("agent_sessions", None)]
    MigrationExecutor(connection).migrate(ours)
    tables = connection.introspection.table_names()
    assert not [name for name in tables if name.startswith(("catalog_", "agent_"))]
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())
    assert Policy.objects.filter(slug="default").exists()
