"""Static files are collected when they changed, and only then."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.conf import settings
from django.test import override_settings

from toolsearch_site.static_files import collect_static_files

MANIFEST_STORAGE = {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"}


@dataclass(frozen=True)
class Folders:
    source: Path
    collected: Path

    def collected_text(self) -> str:
        return (self.collected / "page.css").read_text()


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[Folders]:
    found = Folders(tmp_path / "source", tmp_path / "static")
    found.source.mkdir()
    (found.source / "page.css").write_text("a {}")
    with override_settings(
        STATIC_ROOT=found.collected,
        STATICFILES_DIRS=[found.source],
        STATICFILES_FINDERS=["django.contrib.staticfiles.finders.FileSystemFinder"],
        STORAGES={**settings.STORAGES, "staticfiles": MANIFEST_STORAGE},
    ):
        collect_static_files()
        yield found


def test_same_files_are_not_collected_again(folders: Folders) -> None:
    (folders.collected / "page.css").write_text("as the last start left it")
    collect_static_files()
    assert folders.collected_text() == "as the last start left it"


def test_changed_file_is_collected_though_its_size_is_the_same(folders: Folders) -> None:
    (folders.source / "page.css").write_text("b {}")
    collect_static_files()
    assert folders.collected_text() == "b {}"


def test_file_that_came_is_collected(folders: Folders) -> None:
    (folders.source / "more.css").write_text("c {}")
    collect_static_files()
    assert (folders.collected / "more.css").exists()


def test_folder_without_its_manifest_is_collected_again(folders: Folders) -> None:
    for path in folders.collected.iterdir():
        path.unlink()
    collect_static_files()
    assert folders.collected_text() == "a {}"
