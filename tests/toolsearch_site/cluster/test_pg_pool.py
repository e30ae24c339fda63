"""Pooled connections detect by themselves that their server is gone."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.db import connection
from psycopg_pool import ConnectionPool

from tests.harness.instance import wait_for
from tests.harness.nodes import Postgres, missing_programs
from toolsearch_site.cluster.pg_pool import PooledConnection

pytestmark = pytest.mark.postgres

ROOT = Path(__file__).resolve().parents[3]
ASK_AND_REST = """
import time
import psycopg
from django.db import connection
from toolsearch_site.cluster.preflight import disable_pool

def count():
    with psycopg.connect(**parameters) as other:
        return other.execute("SELECT count(*) FROM pg_stat_activity WHERE pid = %s", [pid]).fetchone()[0]

disable_pool()
parameters = connection.get_connection_params()
connection.ensure_connection()
pid = connection.connection.info.backend_pid
print(count())
connection.close()
deadline = time.monotonic() + 5
while count() and time.monotonic() < deadline:
    time.sleep(0.05)
print(count())
"""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The one that this run is on, or else one of our own."""
    if given := os.environ.get("DATABASE_URL"):
        yield given
        return
    if missing := missing_programs():
        pytest.skip(f"{', '.join(missing)} is absent")
    with tempfile.TemporaryDirectory(prefix="toolsearch-pooled-") as folder:
        Path(folder).chmod(0o755)  # PostgreSQL's own user has to find its part of it
        own = Postgres(Path(folder) / "postgres")
        own.start()
        yield own.url
        own.stop()


@pytest.fixture
def resting(server: str) -> Iterator[PooledConnection]:
    with PooledConnection.connect(server, autocommit=True) as made:
        yield made


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The statements that reached the server."""
    statements: list[Any] = []
    execute = psycopg.Connection.execute

    def note(self: Any, query: Any, *arguments: Any, **options: Any) -> Any:
        statements.append(query)
        return execute(self, query, *arguments, **options)

    monkeypatch.setattr(psycopg.Connection, "execute", note)
    return statements


def test_server_is_not_asked_while_all_is_quiet(resting: PooledConnection, asked: list[Any]) -> None:
    ConnectionPool.check_connection(resting)
    assert asked == []
    assert resting.execute("SELECT 7").fetchone() == (7,)
    assert asked == ["SELECT 7"]


def test_connection_that_the_server_ended_is_found_out(server: str, resting: PooledConnection) -> None:
    end(server, resting)
    wait_for(lambda: not resting._is_quiet(), within_seconds=10)
    with pytest.raises(psycopg.OperationalError):
        ConnectionPool.check_connection(resting)


def test_closed_connection_is_found_out(resting: PooledConnection) -> None:
    resting.close()
    with pytest.raises(psycopg.OperationalError):
        ConnectionPool.check_connection(resting)


def test_server_is_asked_where_it_has_said_something(resting: PooledConnection, asked: list[Any]) -> None:
    """A notice, for one: then it is the server's answer that counts, and the connection is kept."""
    resting.execute("LISTEN news")
    with psycopg.connect(resting.info.dsn, autocommit=True) as other:
        other.execute("NOTIFY news")
    wait_for(lambda: not resting._is_quiet(), within_seconds=10)
    asked.clear()
    ConnectionPool.check_connection(resting)
    assert asked == [""]


def test_pool_replaces_what_the_server_ended(server: str) -> None:
    with ConnectionPool(
        server, connection_class=PooledConnection, check=ConnectionPool.check_connection, min_size=2
    ) as pool:
        pool.wait()
        with pool.connection() as one, pool.connection() as two:
            ended = [one, two]
        for each in ended:
            end(server, each)
            wait_for(lambda each=each: not each._is_quiet(), within_seconds=10)  # type: ignore[misc]
        with pool.connection(timeout=10) as made:
            assert made.execute("SELECT 7").fetchone() == (7,)
            assert made not in ended


@pytest.mark.django_db
def test_is_what_the_site_uses() -> None:
    assert settings.POOL["connection_class"] is PooledConnection
    connection.ensure_connection()
    assert isinstance(connection.connection, PooledConnection) is (connection.vendor == "postgresql")


def test_process_that_asks_now_and_then_keeps_no_connection(server: str, tmp_path: Path) -> None:
    """A node's supervisor does. With the pool it would keep one, and one more after each absence."""
    environment = {
        "PATH": os.environ["PATH"],
        "TOOLSEARCH_DATA": str(tmp_path),
        "DATABASE_URL": server,
        "SECRET_KEY": "a-very-long-and-random-text-of-letters-9471",
    }
    command = [sys.executable, "manage.py", "shell", "--verbosity", "0", "-c", ASK_AND_REST]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["1", "0"]


def end(server: str, ended: PooledConnection) -> None:
    with psycopg.connect(server, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s)", [ended.info.backend_pid])
