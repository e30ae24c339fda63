"""Takes a consistent backup of a running instance."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from django.db import connection, transaction
from django.utils import timezone

from catalog.access import actors
from catalog.access.roles import Role
from catalog.domain.backup_file import BackupWriter, Header, TableLine
from catalog.services.backup import tables

READ_AT_ONCE_ROWS = 2000


@dataclass(frozen=True, slots=True)
class Taken:
    tables: int
    rows: int
    packed_bytes: int


def take_backup(*, file: Path, actor: actors.Actor) -> Taken:
    """Write the file atomically, readable by its owner only. Raises OSError where that fails."""
    actors.require(actor, Role.ADMIN)
    kept = tables.kept_models()
    with _private_file(file) as packed, _one_moment():
        header = Header(timezone.now().isoformat(), tables.applied_migrations(), tables.key_check())
        writer = BackupWriter(packed, header)
        for label, model in kept.items():
            writer.begin_table(TableLine(label, tables.columns_of(model)))
            _write_rows(writer, model)
        writer.write_checksum()
    return Taken(tables=len(kept), rows=writer.rows, packed_bytes=file.stat().st_size)


def _write_rows(writer: BackupWriter, model: tables.Model) -> None:
    codec = tables.Codec(model)
    rows = tables.all_rows(model).order_by("pk").values_list(*tables.columns_of(model))
    for values in rows.iterator(chunk_size=READ_AT_ONCE_ROWS):
        writer.add(codec.encode(values))


@contextmanager
def _one_moment() -> Iterator[None]:
    """A transaction that sees one state of the database and blocks no writer."""
    if connection.vendor == "sqlite":
        # Ours are immediate and would hold the writers back; in write-ahead mode a reader's does not.
        with connection.cursor() as cursor:
            cursor.execute("BEGIN DEFERRED")
            try:
                yield
            finally:
                cursor.execute("ROLLBACK")
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        yield


@contextmanager
def _private_file(path: Path) -> Iterator[IO[bytes]]:
    """A temporary file that replaces the path at the end; on failure the path stays as it was."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
