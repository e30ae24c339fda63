"""`manage.py` as it is called from a shell: what goes wrong is said in one line."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from toolsearch_site.embedded_file import holds_sealed_rows

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = '{"servers": {"a": {"tools": [{"name": "x", "inputSchema": {}}]}}}'


def manage(*arguments: str, data: Path | str, given: str = "") -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env={**kept, "TOOLSEARCH_DATA": str(data)},
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )


def test_database_without_tables_is_said_in_one_line(tmp_path: Path) -> None:
    ended = manage("create_key", "agent", data=tmp_path)
    assert ended.returncode == 1
    assert ended.stderr.startswith("toolsearch: the database cannot be used")
    assert ended.stderr.count("\n") == 1


def test_pure_command_needs_and_leaves_no_data_folder(tmp_path: Path) -> None:
    ended = manage("decide", "-", "--json", data="/proc/nowhere", given=DOCUMENT)
    assert ended.returncode == 0, ended.stderr
    assert '"mode_always"' in ended.stdout


def test_what_is_stored_is_private_in_a_folder_that_is_not(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    assert manage("migrate", "--verbosity", "0", data=tmp_path).returncode == 0
    open_to_others = [path.name for path in tmp_path.iterdir() if path.stat().st_mode & 0o077]
    assert open_to_others == []


@pytest.mark.parametrize("name", ["encryption.key", "secret.key"])
@pytest.mark.parametrize("garbage", [b"", b"garbage", b"\xff\xfe"])
def test_key_file_with_garbage_stops_the_start(tmp_path: Path, name: str, garbage: bytes) -> None:
    (tmp_path / name).write_bytes(garbage)
    ended = manage("up", "--port", "1", data=tmp_path)
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
    assert str(tmp_path / name) in ended.stderr


def test_lost_key_stops_the_start_where_it_is_needed(tmp_path: Path) -> None:
    config = '{"mcpServers": {"a": {"url": "https://mcp.test/", "headers": {"X": "secret-value"}}}}'
    assert manage("migrate", "--verbosity", "0", data=tmp_path).returncode == 0
    key = tmp_path / "encryption.key"
    key.rename(tmp_path / "kept")
    assert manage("import_config", "-", data=tmp_path, given=config).returncode == 0  # none was needed yet
    key.unlink()
    ended = manage("up", "--port", "1", data=tmp_path)
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
    assert f"{key} is missing" in ended.stderr
    assert not key.exists()


def test_damaged_database_is_called_so(tmp_path: Path) -> None:
    assert manage("migrate", "--verbosity", "0", data=tmp_path).returncode == 0
    file = tmp_path / "toolsearch.sqlite3"
    file.write_bytes(b"no database at all " * 1000)
    ended = manage("create_key", "agent", data=tmp_path)
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
    assert "the database is damaged" in ended.stderr
    assert "restore" in ended.stderr
    assert "migrate" not in ended.stderr


def test_database_that_cannot_be_read_counts_as_one_that_needs_its_key(tmp_path: Path) -> None:
    path = tmp_path / "toolsearch.sqlite3"
    assert not holds_sealed_rows(path)
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE catalog_server (sealed TEXT)")
    assert not holds_sealed_rows(path)
    path.write_bytes(b"SQLite format 3\0" + b"garbage" * 1000)
    assert holds_sealed_rows(path)
