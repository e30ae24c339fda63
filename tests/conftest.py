"""What every test gets: a search index of its own, and no memory of another test's catalog."""

import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.test import override_settings

from catalog.services import search
from sessions.reading import models_known, offers
from sessions.services import records

HERE = Path(__file__).parent
SHARED_SCOPES = ("class", "module", "package")
# Two clusters side by side would spoil the times that these tests measure: one worker runs them both.
ONE_AFTER_THE_OTHER = frozenset(HERE / "up" / name for name in ("test_nodes.py", "test_agent_day.py"))
# Beside the rest of their folder, since they have an instance of their own: only the browser starts twice.
ON_THEIR_OWN = frozenset(HERE / "browser" / name for name in ("test_bulk.py", "test_hostile.py"))
# The longest groups, in this order: nobody may begin one of them when the others are nearly done.
LONGEST_FIRST = (
    HERE / "browser",
    HERE / "up" / "test_refresh.py",
    HERE / "catalog" / "commands" / "test_backup.py",
    *sorted(ONE_AFTER_THE_OTHER),
    HERE / "up",
    *sorted(ON_THEIR_OWN),
    HERE / "docs" / "test_agents.py",
    HERE / "catalog" / "search" / "test_crashes.py",
)
# Rules, parsers, the index and the MCP client: on another database they could only say the same again.
WITHOUT_DATABASE = frozenset(
    HERE / part for part in ("catalog/domain", "catalog/search", "catalog/upstream", "sessions/domain")
)


@pytest.fixture(autouse=True)
def index_folder(tmp_path: Path) -> Iterator[Path]:
    """Where this test's index is; it does not exist until the test builds it."""
    for remembering in (search, offers, models_known, records):
        remembering.forget()
    with override_settings(INDEX_FOLDER=tmp_path / "index"):
        yield tmp_path / "index"


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
        if WITHOUT_DATABASE.intersection(item.path.parents):
            _refuse_database(item)
            item.add_marker(pytest.mark.databaseless)


def _refuse_database(item: pytest.Function) -> None:
    if item.get_closest_marker("django_db") or "db" in item.fixturenames:
        raise pytest.UsageError(f"{item.nodeid} uses a database: its place is beside another part's tests")


def _group_of(item: pytest.Function) -> str | None:
    """The module or folder whose fixture this test shares with its neighbours."""
    if item.path in ONE_AFTER_THE_OTHER:
        return "one after the other"
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
