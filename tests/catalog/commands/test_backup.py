"""`manage.py backup` and `restore`: from one real instance into another, on SQLite, PostgreSQL and across."""

import gzip
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest
from cryptography.fernet import Fernet

from catalog.models import OAuthClient
from catalog.sealing import derive_key
from catalog.services import oauth_rows
from catalog.services.backup.restoring import find_locked
from tests.harness.commands import run_command
from tests.harness.instance import own_database
from tests.harness.rows import make_server

CANARY = "canary-5b1d02"
SECRET = "the same for both " * 3
FILL = f"""
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from catalog.access.roles import Role
from catalog.domain import dialects
from catalog.models import Server
from catalog.services import change_signatures, config, demo, derived_state
from catalog.access.actors import COMMAND_LINE
from sessions.models import LoadedTool, SearchEvent, Snapshot
from django.utils import timezone
from catalog.services import keys
from tests.harness.rows import make_job, make_run, make_session, make_user
demo.load_demo()
entry = {{"command": "tool-server", "env": {{"TOKEN": "{CANARY}"}}}}
planted = dialects.parse_config({{"mcpServers": {{"planted": entry}}}})
config.import_config(config=planted, policy_slug="default", actor=COMMAND_LINE)
admin = make_user(Role.ADMIN, username="ada")
admin.user_permissions.set(Permission.objects.order_by("-pk")[:2])
Group.objects.get(name="editor").permissions.add(Permission.objects.latest("pk"))
kind = ContentType.objects.latest("pk")
LogEntry.objects.create(user=admin, content_type=kind, object_repr="é", action_flag=1)
key = keys.create_key(name="agent", actor=COMMAND_LINE).key
session = make_session(key=key, external_id="x", visible=["mcp__*"])
LoadedTool.objects.create(session=session, name="a", position=1, loaded_turn=1, used_turn=1)
SearchEvent.objects.create(session=session, at=timezone.now(), turn=1, query="q", form="keywords",
                           outcome="matched", hits=[["a", 1.5]], took_us=9)
Snapshot.objects.create(session=session, turn=1, search_tool_name="s", was_active=True, loaded=[["a", 1]])
make_run(server=Server.objects.get(name="planted"), rejected=[{{"name": "x"}}])
make_job(kind="refresh_server", state="running", held_by="a worker", held_until=timezone.now())
derived_state.bring_up_to_date()
change_signatures.sign_new()
"""
# Every table by the ORM's own reading: nothing of the backup's code, and the same on every database.
SHOW = """
import json
from django.apps import apps
of_the_moment = {"sessions.session", "contenttypes.contenttype", "auth.permission", "catalog.heartbeat"}
words = {"content_type": "content_type__model", "permission": "permission__codename"}
tables = {}
for model in apps.get_models(include_auto_created=True):
    if model._meta.label_lower not in of_the_moment:
        columns = [words.get(field.name, field.attname) for field in model._meta.concrete_fields]
        rows = model._base_manager.order_by("pk").values(*columns)
        tables[model._meta.label_lower] = list(rows)
print(json.dumps(tables, sort_keys=True, default=repr))
"""
# At every table a server and its change record are committed from elsewhere, as by a web process.
BACK_UP_UNDER_WRITES = """
import sys, threading
from pathlib import Path
from django.db import connection
from catalog.domain.backup_file import BackupWriter
from catalog.services.backup import taking
from catalog.access.actors import COMMAND_LINE
from tests.harness.rows import make_change, make_server
begin = BackupWriter.begin_table
def write():
    server = make_server()
    make_change(name=server.name, action="created")
    connection.close()
def begin_under_writes(self, table):
    thread = threading.Thread(target=write)
    thread.start()
    thread.join(timeout=10)
    assert not thread.is_alive(), "a writer waits for the backup"
    begin(self, table)
BackupWriter.begin_table = begin_under_writes
taking.take_backup(file=Path({path!r}), actor=COMMAND_LINE)
"""
FILLED = {
    "admin.logentry",
    "agent_sessions.agentsession",
    "agent_sessions.loadedtool",
    "agent_sessions.searchevent",
    "agent_sessions.snapshot",
    "auth.group",
    "auth.group_permissions",
    "auth.user",
    "auth.user_groups",
    "auth.user_user_permissions",
    "catalog.apikey",
    "catalog.catalogversion",
    "catalog.change",
    "catalog.decidedlist",
    "catalog.decision",
    "catalog.job",
    "catalog.lastseal",
    "catalog.modelsupport",
    "catalog.policy",
    "catalog.refreshrun",
    "catalog.server",
    "catalog.tool",
    "catalog.toolrevision",
}


@dataclass(frozen=True)
class Place:
    """A data folder, and a database of its own where the run is on PostgreSQL."""

    data: Path
    database_url: str | None

    def manage(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        environment |= {
            "TOOLSEARCH_DATA": str(self.data),
            "TOOLSEARCH_STDIO": "on",
            "SECRET_KEY": SECRET,
            **variables,
        }
        if self.database_url:
            environment["DATABASE_URL"] = self.database_url
        return run_command(*arguments, environment=environment)

    def run(self, *arguments: str, **variables: str) -> str:
        done = self.manage(*arguments, **variables)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def shell(self, script: str) -> str:
        return self.run("shell", "--verbosity", "0", "--command", script)

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        found: dict[str, list[dict[str, Any]]] = json.loads(self.shell(SHOW))
        return found

    @property
    def key_file(self) -> str:
        return (self.data / "encryption.key").read_text()


class MakePlace(Protocol):
    def __call__(self, *, on_sqlite: bool) -> Place: ...


@dataclass(frozen=True)
class World:
    filled: Place
    backup: Path
    before: dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakePlace]:
    """Makes migrated, empty instances: on the run's own database, or on SQLite."""
    migrated = Place(tmp_path_factory.mktemp("migrated"), None)
    migrated.run("migrate", "--verbosity", "0")
    with ExitStack() as stack:

        def make(*, on_sqlite: bool) -> Place:
            url = None if on_sqlite else stack.enter_context(own_database())
            place = Place(tmp_path_factory.mktemp("place"), url)
            if url is None:
                shutil.copytree(migrated.data, place.data, dirs_exist_ok=True)
            else:
                place.run("migrate", "--verbosity", "0")
            return place

        yield make


@pytest.fixture(scope="module")
def world(places: MakePlace, tmp_path_factory: pytest.TempPathFactory) -> World:
    filled = places(on_sqlite=False)
    filled.shell(FILL)
    before = filled.tables()
    path = tmp_path_factory.mktemp("backups") / "whole.backup"
    filled.shell(BACK_UP_UNDER_WRITES.format(path=str(path)))
    return World(filled, path, before)


@pytest.fixture(scope="module")
def restored(world: World, places: MakePlace, tmp_path_factory: pytest.TempPathFactory) -> list[Place]:
    """The backup brought into SQLite, and a backup of that into the run's own kind of database.

    With the encryption key of the first instance, which no backup holds.
    """
    key = {} if world.filled.database_url else {"TOOLSEARCH_ENCRYPTION_KEY": world.filled.key_file}
    there, back = places(on_sqlite=True), places(on_sqlite=False)
    again = tmp_path_factory.mktemp("again") / "again.backup"
    for place, path in ((there, world.backup), (back, again)):
        done = place.manage("restore", str(path), **key)
        assert done.returncode == 0, done.stderr
        assert "do not work" not in done.stderr
        if key:  # later commands read it from where an instance keeps it
            (place.data / "encryption.key").write_text(world.filled.key_file)
        place.run("backup", str(again))
    return [there, back]


@pytest.mark.slow
def test_every_table_is_equal_to_the_moment_the_backup_began(world: World, restored: list[Place]) -> None:
    """Taken while another thread wrote: half a write would show as a server without its change."""
    assert {label for label, rows in world.before.items() if rows} >= FILLED
    assert len(world.filled.tables()["catalog.server"]) > len(world.before["catalog.server"])
    for place in restored:
        after = place.tables()
        assert after.keys() == world.before.keys()
        for label, rows in world.before.items():
            assert after[label] == rows, label


@pytest.mark.slow
def test_restored_instance_goes_on(restored: list[Place]) -> None:
    """Searches answer, index and decisions are not behind, and ids go on after those that came."""
    place = restored[-1]
    found = json.loads(place.run("search", "create an issue", "--json"))
    assert "create_issue" in json.dumps(found)
    script = """
from catalog.models import Server
from catalog.selectors.decisions import count_behind
from catalog.selectors.documents import searched_version
from catalog.services import reindex
from tests.harness.rows import make_change, make_server
last = Server.objects.latest("pk").pk
assert make_server().pk > last and make_change().pk
print(count_behind(), reindex._known_version() >= searched_version())
"""
    assert place.shell(script).split() == ["0", "True"]


@pytest.mark.slow
def test_seals_of_the_change_record_hold_wherever_it_went(world: World, restored: list[Place]) -> None:
    """Also where another kind of database spells its numbers in another way."""
    key = derive_key(SECRET) if world.filled.database_url else world.filled.key_file
    for place in (world.filled, *restored):
        verdict = json.loads(place.run("verify_changes", "--json", TOOLSEARCH_ENCRYPTION_KEY=key))
        assert verdict["problems"] == []
        assert verdict["signed"] > 5


@pytest.mark.slow
def test_file_is_private_and_holds_no_secret_and_no_key(world: World) -> None:
    assert world.backup.stat().st_mode & 0o777 == 0o600
    content = gzip.decompress(world.backup.read_bytes()).decode()
    assert '"planted"' in content
    assert CANARY not in content
    if not world.filled.database_url:
        assert world.filled.key_file not in content
    assert "the same for both" not in content


@pytest.mark.slow
class TestRefuses:
    def test_over_data_and_changes_nothing(self, world: World) -> None:
        before = world.filled.tables()
        done = world.filled.manage("restore", str(world.backup))
        assert done.returncode == 1
        assert "has data already" in done.stderr
        assert done.stderr.count("\n") == 1
        assert world.filled.tables() == before

    def test_damaged_foreign_and_other_version_in_one_line(
        self, world: World, places: MakePlace, tmp_path: Path
    ) -> None:
        place = places(on_sqlite=True)
        whole = gzip.decompress(world.backup.read_bytes()).splitlines(keepends=True)
        bad = {
            "is damaged": gzip.compress(b"".join(whole[:-40] + whole[-39:])),
            "is not a backup": b"hello",
            "another version": gzip.compress(
                whole[0].replace(b"catalog.0001", b"catalog.9999") + b"".join(whole[1:])
            ),
        }
        empty = place.tables()
        for words, content in bad.items():
            (tmp_path / "bad").write_bytes(content)
            done = place.manage("restore", str(tmp_path / "bad"))
            assert done.returncode == 1
            assert words in done.stderr
            assert done.stderr.count("\n") == 1, done.stderr
        assert place.tables() == empty

    def test_instance_without_tables(self, world: World, tmp_path: Path) -> None:
        done = Place(tmp_path, None).manage("restore", str(world.backup))
        assert done.returncode == 1
        assert "run `manage.py migrate` first" in done.stderr
        assert done.stderr.count("\n") == 1, done.stderr

    def test_place_that_cannot_be_written(self, world: World, tmp_path: Path) -> None:
        done = world.filled.manage("backup", str(tmp_path / "nowhere" / "b"))
        assert done.returncode == 1
        assert "No such file" in done.stderr
        assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_wrong_keys_are_told(world: World, places: MakePlace) -> None:
    place = places(on_sqlite=True)
    done = place.manage("restore", str(world.backup), SECRET_KEY="another one, just as long as the first")
    assert done.returncode == 0
    assert "does not open the secrets of planted" in done.stderr
    assert "API keys do not work" in done.stderr


@pytest.mark.django_db
def test_client_secret_that_cannot_be_opened_is_told(settings: Any) -> None:
    server = make_server(name="web", transport="http", command="", url="https://mcp.example.com/")
    client = OAuthClient(server=server, source="given", issuer="https://auth.example.com", client_id="own")
    oauth_rows.seal_client_secret(client, "s3cret")
    client.save()
    assert find_locked() == []
    settings.ENCRYPTION_KEYS = (Fernet.generate_key().decode(),)
    assert find_locked() == ["web"]


@pytest.mark.slow
def test_failed_backup_leaves_the_last_one(world: World, tmp_path: Path) -> None:
    path = tmp_path / "kept.backup"
    path.write_text("the last one")
    script = f"""
from pathlib import Path
from catalog.domain.backup_file import BackupWriter
from catalog.services.backup import taking
from catalog.access.actors import COMMAND_LINE
def fail(self): raise OSError(28, "No space left on device")
BackupWriter.write_checksum = fail
taking.take_backup(file=Path({str(path)!r}), actor=COMMAND_LINE)
"""
    done = world.filled.manage("shell", "--verbosity", "0", "--command", script)
    assert "No space left" in done.stderr
    assert path.read_text() == "the last one"
    assert list(tmp_path.iterdir()) == [path]
