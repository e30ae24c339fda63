"""What every test gets: a search index of its own, and no memory of another test's catalog."""

import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from django.test import override_settings

from catalog.services import search
from sessions.reading import models_known, offers
from sessions.services import records


@pytest.fixture(autouse=True)
def index_folder(tmp_path: Path) -> Iterator[Path]:
    """Where this test's index is; it does not exist until the test builds it."""
    for remembering in (search, offers, models_known, records):
        remembering.forget()
    with override_settings(INDEX_FOLDER=tmp_path / "index"):
        yield tmp_path / "index"


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
