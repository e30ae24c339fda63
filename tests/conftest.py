"""What every test gets: a search index of its own, and no memory of another test's catalog."""

from pathlib import Path

import pytest
from pytest_django import Settings

from catalog.services import search


@pytest.fixture(autouse=True)
def index_folder(tmp_path: Path, settings: Settings) -> Path:
    """Where this test's index is; it does not exist until the test builds it."""
    settings.INDEX_FOLDER = tmp_path / "index"
    search.forget()
    return tmp_path / "index"
