"""Restores a backup into an empty instance, all or nothing."""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.management.color import no_style
from django.db import DataError, IntegrityError, connection, transaction

from catalog import process_memory
from catalog.access import actors
from catalog.access.roles import Role
from catalog.domain.backup_file import BackupReader, BackupRow, Header, TableLine, open_backup
from catalog.domain.errors import Conflict, InvalidInput
from catalog.models import OAuthClient, Server
from catalog.sealing import SealBroken
from catalog.services import connections, decisions, encoding, oauth_rows, reindex
from catalog.services.backup import tables

logger = logging.getLogger(__name__)

WRITE_AT_ONCE_ROWS = 500


@dataclass(frozen=True, slots=True)
class RestoredBackup:
    """`locked_servers` have secrets that this instance's encryption keys do not decrypt."""

    made_at: str
    rows: int
    locked_servers: list[str]
    keys_are_valid: bool


def restore_backup(*, file: Path, actor: actors.Actor) -> RestoredBackup:
    """Returns when the index and the decisions have followed.

    Raises Conflict where there are data already or another version made the file, InvalidInput for a file
    that is damaged or no backup.
    """
    actors.require(actor, Role.ADMIN)
    with open_backup(file) as backup:
        _refuse_other_version(backup.header)
        _require_keys()
        try:
            rows = _fill(backup)
        except (TypeError, ValueError, KeyError, ValidationError, DataError, IntegrityError) as problem:
            logger.debug("restore failed", exc_info=problem)
            raise InvalidInput.at(str(file), "is damaged: a row does not fit its table") from None
    process_memory.reset()
    decisions.bring_up_to_date()
    encoding.look_again()
    reindex.rebuild()
    logger.info("%s restored %s rows of the backup made at %s", actor.label, rows, backup.header.made_at)
    return RestoredBackup(
        made_at=backup.header.made_at,
        rows=rows,
        locked_servers=find_locked(),
        keys_are_valid=_knows_secret(backup.header.key_check),
    )


def _require_keys() -> None:
    """Made now where this instance has none: once there are rows that need them they would count as lost."""
    for key in (settings.SECRET_KEY, settings.ENCRYPTION_KEYS):
        bool(key)


def _refuse_other_version(header: Header) -> None:
    theirs, ours = set(header.migrations), set(tables.applied_migrations())
    if not ours:
        raise Conflict("this instance has no tables yet; run `manage.py migrate` first")
    if theirs != ours:
        differing = ", ".join(sorted(theirs ^ ours)[:3])
        raise Conflict(
            f"the backup is of another version (migrations differ: {differing});"
            " restore it with the version that made it, then upgrade"
        )


@transaction.atomic
def _fill(backup: BackupReader) -> int:
    kept = tables.kept_models()
    _refuse_data(kept)
    with connection.cursor() as cursor:
        for label in kept:
            cursor.execute(f"DELETE FROM {_quoted(kept[label]._meta.db_table)}")  # noqa: S608  our own name
    rows = sum(_fill_table(kept, table, found) for table, found in _by_table(backup))
    if kept:
        raise ValueError(f"the backup lacks {', '.join(kept)}")
    _reset_sequences()
    connection.check_constraints()
    return rows


def _refuse_data(kept: dict[str, tables.Model]) -> None:
    """Rows that migrations create do not count."""
    for label, model in kept.items():
        if label not in tables.SEEDED and tables.all_rows(model).exists():
            raise Conflict(
                f"this instance has data already ({label});"
                " restore into an empty one, migrated and never started"
            )


def _by_table(backup: BackupReader) -> Iterator[tuple[TableLine, Iterator[BackupRow]]]:
    """Each table with its rows, which must be consumed before the next table."""
    lines = backup.lines()
    table = next(lines, None)
    while table is not None:
        if not isinstance(table, TableLine):
            raise TypeError("a row comes before its table")
        following: list[TableLine] = []
        yield table, _rows_until_next(lines, following)
        table = following[0] if following else None


def _rows_until_next(
    lines: Iterator[TableLine | BackupRow], following: list[TableLine]
) -> Iterator[BackupRow]:
    for line in lines:
        if isinstance(line, TableLine):
            following.append(line)
            return
        yield line


def _fill_table(kept: dict[str, tables.Model], table: TableLine, rows: Iterator[BackupRow]) -> int:
    model = kept.pop(table.table)
    if table.columns != tables.columns_of(model):
        raise ValueError(f"{table.table} has other columns")
    codec = tables.Codec(model)
    insert = _insert_sql(model)
    count = 0
    with connection.cursor() as cursor:
        while batch := [codec.decode(row) for row in islice(rows, WRITE_AT_ONCE_ROWS)]:
            cursor.executemany(insert, batch)
            count += len(batch)
    return count


def _insert_sql(model: tables.Model) -> str:
    """Plain SQL, because the ORM would overwrite automatic timestamps."""
    fields = model._meta.concrete_fields
    columns = ", ".join(_quoted(field.column) for field in fields)
    places = ", ".join("%s" for _ in fields)
    return f"INSERT INTO {_quoted(model._meta.db_table)} ({columns}) VALUES ({places})"  # noqa: S608  our own names


def _quoted(name: str | None) -> str:
    assert name is not None  # of a field without a column
    return connection.ops.quote_name(name)


def _reset_sequences() -> None:
    """Rows were inserted with their ids: sequences must continue after them."""
    statements: Iterable[str] = connection.ops.sequence_reset_sql(
        no_style(), list(tables.kept_models().values())
    )
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def _knows_secret(check: str) -> bool:
    """Whether the backup's keys were hashed under a `SECRET_KEY` that is valid here."""
    secrets = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return check in {tables.key_check(secret) for secret in secrets}


def find_locked() -> list[str]:
    """Names of servers with a secret that the keys given do not open."""
    locked = []
    for server in Server.objects.select_related("oauth_client"):
        client: OAuthClient | None = getattr(server, "oauth_client", None)
        try:
            connections.read_connection(server)
            if client is not None:
                oauth_rows.read_client_secret(client)
        except SealBroken:
            locked.append(server.name)
    return locked
