"""A gateway over a catalog of one server that behaves on demand."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from django.db import connection, connections
from pytest_django import DjangoDbBlocker

from sessions.services import calls, write_behind
from tests.harness.gateway import RunningGateway, run_gateway
from tests.harness.upstream_fixture import HttpFixture, run_over_http
from tests.sessions.gateway.catalog import ON_SQLITE, Catalog


@pytest.fixture(scope="session")
def upstream_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("upstream") / "log"


@pytest.fixture(scope="session")
def upstream(upstream_log: Path) -> Iterator[HttpFixture]:
    with run_over_http(upstream_log) as running:
        yield running


@pytest.fixture(scope="session")
def tables(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Path | None:
    """A file with the tables of the test database. Made while no test's transaction is open."""
    if not ON_SQLITE:
        return None
    path = tmp_path_factory.mktemp("tables") / "tables.sqlite3"
    with django_db_blocker.unblock(), closing(sqlite3.connect(path)) as file:
        connection.ensure_connection()
        connection.connection.backup(file)
    return path


@pytest.fixture
def database(tables: Path | None, db: None, tmp_path: Path) -> Iterator[None]:
    """A database that threads share. On SQLite a file: in memory, who reads bars who writes from writing."""
    if tables is None:
        yield
        return
    kept, options = connections["default"], connections.settings["default"]
    in_memory, options["NAME"] = options["NAME"], str(shutil.copy(tables, tmp_path / "database.sqlite3"))
    made = connections["default"] = connections.create_connection("default")
    try:
        yield
    finally:
        made.close()
        options["NAME"] = in_memory
        connections["default"] = kept


@pytest.fixture
def catalog(database: None, upstream: HttpFixture) -> Iterator[Catalog]:
    yield Catalog.with_server(upstream)
    for clear in (calls.clear, write_behind.clear):
        clear()


@pytest.fixture
def gateway(catalog: Catalog) -> Iterator[RunningGateway]:
    with run_gateway() as running:
        yield running
