"""Vendored files are byte by byte those that were taken, each with its licence."""

import hashlib
import json
import re
from pathlib import Path

from django.conf import settings

VENDOR = Path(settings.BASE_DIR) / "static/vendor"
SUMS = "SHA256SUMS"


def test_vendored_files_are_those_that_were_taken() -> None:
    """After a change that is meant: `make vendor`, which writes the sums."""
    lines = (VENDOR / SUMS).read_text().splitlines()
    taken = {path.removeprefix("./"): digest for digest, path in (line.split("  ") for line in lines)}
    there = {
        str(path.relative_to(VENDOR)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.rglob("*")
        if path.is_file() and path.name != SUMS
    }
    assert there == taken


def test_everything_vendored_comes_with_its_licence() -> None:
    folders = [path for path in VENDOR.iterdir() if path.is_dir()]
    assert {path.name for path in folders} == {"echarts", "inter", "jetbrains-mono", "tabler", "tabler-icons"}
    for folder in folders:
        assert "Permission" in (text := (folder / "LICENSE").read_text()) or "License" in text, folder.name


def test_versions_are_pinned_and_locked_by_hash() -> None:
    wanted = json.loads((VENDOR / "package.json").read_text())["devDependencies"]
    locked = json.loads((VENDOR / "package-lock.json").read_text())["packages"]
    for name, version in wanted.items():
        assert re.fullmatch(r"\d+\.\d+\.\d+", version), name
        assert locked[f"node_modules/{name}"]["version"] == version
    assert all("integrity" in one for path, one in locked.items() if path)
    assert not any("resolved" in one for one in locked.values()), "the lock names no registry"
