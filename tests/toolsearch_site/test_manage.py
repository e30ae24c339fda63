"""`manage.py` as it is called from a shell: what goes wrong is said in one line."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from django.db import DatabaseError

from manage import main
from tests.harness.commands import run_command
from tests.harness.prepared import prepared
from tests.harness.workers import find_free_port
from toolsearch_site.cluster.embedded_database import holds_sealed_rows

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = '{"servers": {"a": {"tools": [{"name": "x", "inputSchema": {}}]}}}'


def environment_on(data: Path | str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return {**kept, "TOOLSEARCH_DATA": str(data)}


def manage(*arguments: str, data: Path | str, given: str = "") -> subprocess.CompletedProcess[str]:
    return run_command(*arguments, environment=environment_on(data), given=given)


@pytest.mark.slow
def test_program_ends_as_its_forks_do(tmp_path: Path) -> None:
    """The other tests here save the start of an interpreter; this one sees that nothing else differs."""
    ended = subprocess.run(
        [sys.executable, "manage.py", "create_key", "agent"],
        cwd=ROOT,
        env=environment_on(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    forked = manage("create_key", "agent", data=tmp_path)
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, forked.stdout, forked.stderr)


def test_database_without_tables_is_said_in_one_line(tmp_path: Path) -> None:
    ended = manage("create_key", "agent", data=tmp_path)
    assert ended.returncode == 1
    assert ended.stderr.startswith("toolsearch: the database cannot be used")
    assert ended.stderr.count("\n") == 1


def test_pure_command_needs_no_data_folder() -> None:
    ended = manage("decide", "-", "--json", data="/proc/nowhere", given=DOCUMENT)
    assert ended.returncode == 0, ended.stderr
    assert '"mode_always"' in ended.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ("decide", "-"),
        ("migrate", "--check"),
        pytest.param(("makemigrations", "--check", "--dry-run"), marks=pytest.mark.slow),
        pytest.param(("check",), marks=pytest.mark.slow),
    ],
    ids=lambda command: command[0],
)
def test_command_that_stores_nothing_writes_nothing(tmp_path: Path, command: tuple[str, ...]) -> None:
    place = tmp_path / "read only"
    place.mkdir(mode=0o500)
    data = place / "data"
    ended = manage(*command, data=data, given=DOCUMENT)
    assert "Traceback" not in ended.stderr
    assert ended.returncode == (1 if command[0] == "migrate" else 0), ended.stderr
    assert list(place.iterdir()) == []
    data.mkdir()
    manage(*command, data=data, given=DOCUMENT)
    assert list(data.iterdir()) == []


def test_importing_the_settings_writes_nothing_and_sets_no_variable(tmp_path: Path) -> None:
    data = tmp_path / "data"
    script = (
        "import os; before = dict(os.environ); import toolsearch_site.settings, toolsearch_site.celery;"
        " assert dict(os.environ) == {**before, 'DJANGO_SETTINGS_MODULE': 'toolsearch_site.settings'}"
    )
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env={**kept, "TOOLSEARCH_DATA": str(data)}, check=True
    )
    assert not data.exists()


@pytest.mark.slow
def test_what_is_stored_is_private_in_a_folder_that_is_not(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    assert manage("migrate", "--verbosity", "0", data=tmp_path).returncode == 0
    open_to_others = [path.name for path in tmp_path.iterdir() if path.stat().st_mode & 0o077]
    assert open_to_others == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["encryption.key", "secret.key"])
@pytest.mark.parametrize("garbage", [b"", b"garbage", b"\xff\xfe"])
def test_key_file_with_garbage_stops_the_start(tmp_path: Path, name: str, garbage: bytes) -> None:
    (tmp_path / name).write_bytes(garbage)
    ended = manage("up", "--port", "1", data=tmp_path)
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
    assert str(tmp_path / name) in ended.stderr


@pytest.mark.slow
def test_folder_that_any_command_makes_is_private(tmp_path: Path) -> None:
    data = tmp_path / "above" / "data"
    manage("reindex", data=data)
    assert [path.stat().st_mode & 0o077 for path in (data.parent, data, data / "index")] == [0, 0, 0]


SECRET_CONFIG = '{"mcpServers": {"a": {"url": "https://mcp.test/", "headers": {"X": "secret-value"}}}}'
WEB_PROCESS = "import warnings; warnings.simplefilter('ignore'); import toolsearch_site.wsgi"
OTHER_CONFIG = SECRET_CONFIG.replace('"a"', '"b"')


@pytest.fixture
def migrated(tmp_path: Path) -> Path:
    return prepared(tmp_path)


def test_keys_are_made_by_the_first_command_that_needs_them(migrated: Path) -> None:
    assert list(migrated.glob("*.key")) == []
    assert manage("import_config", "-", data=migrated, given=SECRET_CONFIG).returncode == 0
    assert (migrated / "encryption.key").stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ("up", "--port", "1"),
        pytest.param(("import_config", "-"), marks=pytest.mark.slow),
        pytest.param(("refresh", "a", "--wait"), marks=pytest.mark.slow),
        pytest.param(("rotate_secrets",), marks=pytest.mark.slow),
        pytest.param(("shell", "--command", WEB_PROCESS), marks=pytest.mark.slow),
    ],
    ids=lambda command: command[0],
)
def test_lost_encryption_key_stops_what_seals_or_opens(migrated: Path, command: tuple[str, ...]) -> None:
    assert manage("import_config", "-", data=migrated, given=SECRET_CONFIG).returncode == 0
    key = migrated / "encryption.key"
    key.unlink()
    ended = manage(*command, data=migrated, given=OTHER_CONFIG)
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1), ended.stderr
    assert f"{key} is missing" in ended.stderr
    assert not key.exists()


@pytest.mark.slow
def test_lost_encryption_key_stops_a_worker_and_a_scheduler(migrated: Path) -> None:
    assert manage("import_config", "-", data=migrated, given=SECRET_CONFIG).returncode == 0
    (migrated / "encryption.key").unlink()
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    for part in (("worker", "--pool", "threads"), ("beat", "--pidfile", "")):
        ended = subprocess.run(
            [sys.executable, "-m", "celery", "--app", "toolsearch_site", "--quiet", *part],
            cwd=ROOT,
            env={**kept, "TOOLSEARCH_DATA": str(migrated)},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert ended.returncode == 1
        assert "encryption.key is missing" in ended.stderr
        assert "Traceback" not in ended.stderr


@pytest.mark.slow
def test_lost_encryption_key_does_not_stop_a_backup(migrated: Path) -> None:
    assert manage("import_config", "-", data=migrated, given=SECRET_CONFIG).returncode == 0
    (migrated / "encryption.key").unlink()
    ended = manage("backup", str(migrated / "kept"), data=migrated)
    assert ended.returncode == 0, ended.stderr
    assert not (migrated / "encryption.key").exists()


@pytest.mark.slow
def test_lost_secret_key_stops_where_agents_have_keys(migrated: Path) -> None:
    assert manage("create_key", "agent", data=migrated).returncode == 0
    key = migrated / "secret.key"
    key.rename(migrated / "kept")
    for command in (("up", "--port", "1"), ("create_key", "other")):
        ended = manage(*command, data=migrated)
        assert (ended.returncode, ended.stderr.count("\n")) == (1, 1), ended.stderr
        assert f"{key} is missing, and agents' keys are stored under it" in ended.stderr
        assert not key.exists()
    (migrated / "kept").rename(key)
    assert manage("create_key", "other", data=migrated).returncode == 0


def test_lost_secret_key_that_only_sign_ins_hang_on_is_made_anew_and_said(migrated: Path) -> None:
    with closing(sqlite3.connect(migrated / "toolsearch.sqlite3")) as database, database:
        database.execute("INSERT INTO django_session VALUES ('a', '', '2999-01-01')")
    ended = manage("create_key", "agent", data=migrated)
    assert ended.returncode == 0
    assert "everybody has to sign in again" in ended.stderr


def test_damaged_database_is_called_so(tmp_path: Path) -> None:
    file = prepared(tmp_path) / "toolsearch.sqlite3"
    file.write_bytes(b"no database at all " * 1000)
    ended = manage("create_key", "agent", data=tmp_path)
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
    assert "the database is damaged" in ended.stderr
    assert "restore" in ended.stderr
    assert "migrate" not in ended.stderr


@pytest.mark.slow
def test_start_on_a_damaged_database_ends_with_one_line(migrated: Path) -> None:
    """Its first page is whole, so that it opens. The keys are beside it, as after any start."""
    assert manage("create_key", "agent", data=migrated).returncode == 0
    assert manage("import_config", "-", data=migrated, given=SECRET_CONFIG).returncode == 0
    file = migrated / "toolsearch.sqlite3"
    with closing(sqlite3.connect(file)) as database:
        (page_bytes,) = database.execute("PRAGMA page_size").fetchone()
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = file.read_bytes()
    file.write_bytes(whole[:page_bytes] + b"\xa5" * (len(whole) - page_bytes))
    ended = manage("up", "--no-demo", "--no-gateway", "--port", str(find_free_port()), data=migrated)
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1), ended.stderr
    assert "the database is damaged" in ended.stderr


@pytest.mark.parametrize(("state", "is_damaged"), [("XX001", True), ("XX002", True), ("42P01", False)])
def test_damage_that_postgresql_tells_is_known_by_its_code(
    monkeypatch: pytest.MonkeyPatch, state: str, is_damaged: bool
) -> None:
    cause = Exception("Seite ist kaputt")
    cause.sqlstate = state  # type: ignore[attr-defined]

    def fail(_: object) -> None:
        raise DatabaseError("Seite ist kaputt") from cause

    monkeypatch.setattr("manage.execute_from_command_line", fail)
    monkeypatch.setattr("manage.make_undumpable", lambda: None)
    with pytest.raises(SystemExit, match="is damaged" if is_damaged else "cannot be used"):
        main()


def test_database_that_cannot_be_read_counts_as_one_that_needs_its_key(tmp_path: Path) -> None:
    path = tmp_path / "toolsearch.sqlite3"
    assert not holds_sealed_rows(path)
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE catalog_server (sealed TEXT)")
    assert not holds_sealed_rows(path)
    path.write_bytes(b"SQLite format 3\0" + b"garbage" * 1000)
    assert holds_sealed_rows(path)
