"""A data folder as the first start leaves it, made once for a test run: tables and collected static files.

Instances whose first start is not what a test looks at begin with a copy, and are ready seconds sooner.
"""

import fcntl
import os
import shutil
import sqlite3
from pathlib import Path

from tests.harness.commands import run_command
from tests.harness.workers import find_shared_folder

KEPT = ("toolsearch.sqlite3", "static", "static.collected")
PREPARE = """
from django.core.management import call_command
from toolsearch_site.edge.static_files import collect_static_files
call_command("migrate", interactive=False, verbosity=0)
collect_static_files()
"""


def prepared(folder: Path) -> Path:
    """Fill an instance's empty folder. Keys are not copied: each instance makes its own."""
    shutil.copytree(prepare_once(), folder, dirs_exist_ok=True)
    return folder


def open_database() -> sqlite3.Connection:
    """The prepared database, to read. Nobody writes to it, so SQLite needs no files beside it: those would
    come and go while another worker copies the folder.
    """
    return sqlite3.connect(f"file:{prepare_once() / 'toolsearch.sqlite3'}?immutable=1", uri=True)


def prepare_once() -> Path:
    """In the folder that a run's workers share. An old one does no harm: a start brings it up to date."""
    place = find_shared_folder() / "prepared"
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "made").exists():
            _make(place / "making")
            (place / "making").rename(place / "made")
    return place / "made"


def _make(folder: Path) -> None:
    """On SQLite, whatever the run is on: an instance on another database does not read this one's file."""
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    environment["TOOLSEARCH_DATA"] = str(folder)
    made = run_command("shell", "--verbosity", "0", "--command", PREPARE, environment=environment)
    assert made.returncode == 0, made.stderr
    for left in folder.iterdir():
        if left.name not in KEPT:
            shutil.rmtree(left) if left.is_dir() else left.unlink()
