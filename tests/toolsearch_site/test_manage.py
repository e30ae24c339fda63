"""`manage.py` as it is called from a shell: what goes wrong is said in one line."""

import os
import subprocess
import sys
from pathlib import Path

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
