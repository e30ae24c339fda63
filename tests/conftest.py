"""Fixtures of every test: a search index of its own, and empty caches."""

import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.test import override_settings

from catalog import process_memory
from tests.harness.instance import Instance, running_instance
from tests.harness.migrated import copy_tables_when_created
from tests.harness.prepared import prepared

HERE = Path(__file__).parent
SHARED_SCOPES = ("class", "module", "package")
SHARED_INSTANCE = "shared instance"
# In the group of the shared instance: two clusters side by side would spoil the times that they measure.
BESIDE_NOTHING = HERE / "up" / "test_nodes.py"
# Beside the rest of their folder, since they have an instance of their own: only the browser starts twice.
ON_THEIR_OWN = frozenset(HERE / "browser" / name for name in ("test_bulk.py", "test_hostile.py"))
# The longest groups, in this order: nobody may begin one of them when the others are nearly done.
LONGEST_FIRST = (
    HERE / "browser",
    # The group of the shared instance, in this order: the first want the demo, which gives way to the others'
    # servers.
    HERE / "up" / "test_agent_day.py",
    HERE / "docs" / "test_agents.py",
    HERE / "docs" / "test_connect.py",
    HERE / "up" / "test_refresh.py",
    HERE / "up" / "test_web_server.py",
    BESIDE_NOTHING,
    HERE / "clients",
    HERE / "catalog" / "commands" / "test_backup.py",
    HERE / "up",
    *sorted(ON_THEIR_OWN),
    HERE / "toolsearch_site" / "cluster" / "test_brokers.py",
    HERE / "deploy" / "test_proxy.py",
    HERE / "catalog" / "search" / "test_crashes.py",
    HERE / "catalog" / "upstream",
)
# Rules, parsers, the index and the MCP client: none of their tests may use a database.
WITHOUT_DATABASE = frozenset(
    HERE / part
    for part in (
        "catalog/domain",
        "catalog/search",
        "catalog/upstream",
        "sessions/domain",
        "sessions/offers/rendering",
    )
)
# Processes on the run's database, though the tests themselves use none.
START_ON_THE_DATABASE = frozenset(
    HERE / part
    for part in ("up", "catalog/commands/test_backup.py", "toolsearch_site/cluster/test_brokers.py")
)
# What these look at is the same on every database, or they bring their own.
SEEN_ONCE = frozenset(
    HERE / part
    for part in (
        "browser",
        "clients",
        "docs",
        "deploy",
        "up/test_full_disk.py",
        "up/test_gateway_process.py",
        "up/test_nodes.py",
        "up/test_web_server.py",
    )
)
DATABASE_FIXTURES = frozenset({"db", "transactional_db"})


@pytest.fixture(scope="session")
def shared_instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    """One running instance, with the demo, for the tests that need no other: they are one worker's.

    Slow clients are given up after five seconds, servers that do not answer after fifteen.
    """
    variables = {
        "TOOLSEARCH_CLIENT_TIMEOUT": "5",
        "TOOLSEARCH_CONNECT_TIMEOUT": "15",
        "TOOLSEARCH_LIST_TIMEOUT": "15",
        "TOOLSEARCH_PRIVATE_ADDRESSES": "on",
    }
    with running_instance(prepared(tmp_path_factory.mktemp("shared")), **variables) as running:
        running.wait_until_healthy()
        yield running


@pytest.fixture(autouse=True)
def index_folder(tmp_path: Path) -> Iterator[Path]:
    """Where this test's index is; it does not exist until the test builds it."""
    process_memory.reset()
    with override_settings(INDEX_FOLDER=tmp_path / "index"):
        yield tmp_path / "index"


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    """pytest-django's own hook, called before it creates the test database."""
    copy_tables_when_created()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, None, None]:
    """Tests that share what is dear to start stay together when several workers run the suite.

    Around all other hooks: pytest-xdist reads the groups in one of them, pytest-django sorts in another.
    """
    _leave_out_concurrent(config, items)
    _mark(items)
    yield
    items.sort(key=turn_of)


def turn_of(item: pytest.Item) -> int:
    """When this test's group begins, among the longest; the others come after them."""
    place = next((place for place in (item.path, *item.path.parents) if place in LONGEST_FIRST), None)
    return len(LONGEST_FIRST) if place is None else LONGEST_FIRST.index(place)


def _leave_out_concurrent(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test of transactions that meet has nothing to meet on SQLite, where one writes at a time."""
    if settings.DATABASES["default"]["ENGINE"].endswith("postgresql"):
        return
    left_out = [item for item in items if item.get_closest_marker("concurrent")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def _mark(items: list[pytest.Item]) -> None:
    for item in items:
        if not isinstance(item, pytest.Function):
            continue
        if group := _group_of(item):
            item.add_marker(pytest.mark.xdist_group(group))
        if _is_in(item, WITHOUT_DATABASE) and _uses_database(item):
            raise pytest.UsageError(
                f"{item.nodeid} uses a database: its place is beside another part's tests"
            )
        if _is_databaseless(item):
            item.add_marker(pytest.mark.databaseless)


def _is_databaseless(item: pytest.Function) -> bool:
    if _is_in(item, SEEN_ONCE):
        return True
    return not (
        _uses_database(item) or _is_in(item, START_ON_THE_DATABASE) or item.get_closest_marker("postgres")
    )


def _uses_database(item: pytest.Function) -> bool:
    return bool(item.get_closest_marker("django_db") or DATABASE_FIXTURES.intersection(item.fixturenames))


def _is_in(item: pytest.Item, places: frozenset[Path]) -> bool:
    return not places.isdisjoint((item.path, *item.path.parents))


def _group_of(item: pytest.Function) -> str | None:
    """The module or folder whose fixture this test shares with its neighbours."""
    if "shared_instance" in item.fixturenames or item.path == BESIDE_NOTHING:
        return SHARED_INSTANCE
    if item.path in ON_THEIR_OWN:
        return item.path.stem
    found = (definitions[-1] for definitions in item._fixtureinfo.name2fixturedefs.values())
    places = [fixture.baseid for fixture in found if fixture.scope in SHARED_SCOPES and fixture.baseid]
    return min(places, key=len, default=None)


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """Workers must agree on names, and bytes may hold a time or a key; nobody reads them in a name."""
    return argname if isinstance(val, bytes) else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where CI provides what tests need, a skip is a failure; benchmark data alone may be absent."""
    report = yield
    if os.environ.get("CI") and report.skipped and "benchmark data" not in str(report.longrepr):
        report.outcome = "failed"
        report.longrepr = f"skipped, but CI provides everything: {report.longrepr}"
    return report
