"""Static files are collected when they changed, and only then; the stylesheets become one."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.conf import settings
from django.test import override_settings

from toolsearch_site.edge.static_files import collect_static_files

MANIFEST_STORAGE = {"BACKEND": "toolsearch_site.edge.static_files.ConsoleStorage"}


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


def test_stylesheets_are_collected_as_one(folders: Folders) -> None:
    (folders.source / "css").mkdir()
    (folders.source / "img").mkdir()
    (folders.source / "img/dot.svg").write_text("<svg/>")
    (folders.source / "css/console.css").write_text('@import "type.css";\n@import "print.css" print;\n')
    (folders.source / "css/type.css").write_text('b { background: url("../img/dot.svg") }\n')
    (folders.source / "css/print.css").write_text("i { color: red }\n")
    collect_static_files()
    there = sorted(path.name for path in (folders.collected / "css").iterdir())
    served = next(name for name in there if re.fullmatch(r"console\.\w+\.css", name))
    text = (folders.collected / "css" / served).read_text()
    assert {name.partition(".")[0] for name in there} == {"console"}
    assert re.search(r'^b \{ background: url\("\.\./img/dot\.\w+\.svg"\) \}$', text, re.MULTILINE)
    assert "@media print {\ni { color: red }\n}" in text
    assert "@import" not in text


def test_modules_import_each_other_by_their_hashed_names(folders: Folders) -> None:
    (folders.source / "js").mkdir()
    (folders.source / "js/chart.js").write_text('import { red } from "./colours.js";\n')
    (folders.source / "js/colours.js").write_text("export const red = 1;\n")
    collect_static_files()
    chart = next((folders.collected / "js").glob("chart.????????????.js"))
    name = re.fullmatch(r'import \{ red \} from "\./(colours\.\w+\.js)";\n', chart.read_text())
    assert name
    assert (folders.collected / "js" / name[1]).exists()


def test_how_vendored_files_are_built_is_not_collected(folders: Folders) -> None:
    vendor = folders.source / "vendor"
    (vendor / "node_modules/x").mkdir(parents=True)
    recipe = ["node_modules/x/x.css", "package.json", "package-lock.json", "build.mjs", "SHA256SUMS"]
    for name in [*recipe, "LICENSE"]:
        (vendor / name).write_text("{}")
    collect_static_files()
    there = {path.name.partition(".")[0] for path in (folders.collected / "vendor").iterdir()}
    assert there == {"LICENSE"}
