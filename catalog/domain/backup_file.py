"""The format of a backup file: compressed JSON lines, the last of which holds a row count and a checksum.

    {"toolsearch_backup": 1, "made_at": …, "migrations": […], "key_check": …}
    {"table": "catalog.server", "columns": ["id", "name", …]}
    [1, "github", …]
    {"rows": 1, "sha256": …}

A reader holds one line at a time, and refuses a file that expands out of proportion. A writer pads rows that
compress as well as that with zeros, which gzip ignores, until the file is long enough.
"""

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from catalog.domain.errors import InvalidInput
from catalog.domain.json_text import read_json

BACKUP_FORMAT = 1
LONGEST_LINE_BYTES = 32 * 1024 * 1024
# JSON of rows packs to a tenth or a fiftieth of its size; a bomb to a thousandth.
LARGEST_EXPANSION = 200
ALWAYS_ALLOWED_BYTES = 64 * 1024 * 1024
_MARK = "toolsearch_backup"


@dataclass(frozen=True, slots=True)
class Header:
    """`key_check` shows whether two instances have the same SECRET_KEY, and nothing else about it."""

    made_at: str
    migrations: Sequence[str]
    key_check: str


@dataclass(frozen=True, slots=True)
class TableLine:
    table: str
    columns: Sequence[str]


BackupRow = list[Any]


class BackupWriter:
    """Writes lines in order. Without `write_checksum` at the end, the file is not valid."""

    def __init__(self, file: IO[bytes], header: Header) -> None:
        self.rows = 0
        self._file = file
        self._begun_at = file.tell()
        self._unpacked_bytes = 0
        self._sum = hashlib.sha256()
        self._packed = gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=6)
        self._write({_MARK: BACKUP_FORMAT, **asdict(header)})

    def begin_table(self, table: TableLine) -> None:
        self._write(asdict(table))

    def add(self, row: BackupRow) -> None:
        self.rows += 1
        self._write(row)

    def write_checksum(self) -> None:
        self._write({"rows": self.rows, "sha256": self._sum.hexdigest()})
        self._packed.close()
        self._pad()

    def _pad(self) -> None:
        """Pads very repetitive backups with zeros, because the reader limits the expansion ratio."""
        if self._unpacked_bytes <= ALWAYS_ALLOWED_BYTES:
            return
        missing = -(-self._unpacked_bytes // LARGEST_EXPANSION) - (self._file.tell() - self._begun_at)
        self._file.write(bytes(max(missing, 0)))

    def _write(self, line: object) -> None:
        content = json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        self._unpacked_bytes += len(content)
        self._sum.update(content)
        self._packed.write(content)


class BackupReader:
    """Reads a complete backup. Everything raises InvalidInput for a damaged or foreign file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._sum = hashlib.sha256()
        self._left_bytes = max(ALWAYS_ALLOWED_BYTES, path.stat().st_size * LARGEST_EXPANSION)
        self._packed = gzip.open(path, "rb")  # noqa: SIM115  closed by `open_backup`
        self.header = self._read_header()

    def close(self) -> None:
        self._packed.close()

    def lines(self) -> Iterator[TableLine | BackupRow]:
        """Table lines, each followed by its rows. The checksum is verified at the end."""
        rows = 0
        while True:
            sum_so_far = self._sum.hexdigest()
            line = self._read_line()
            if isinstance(line, list):
                rows += 1
                yield line
            elif "table" in line:
                yield self._as_table(line)
            else:
                break
        if line != {"rows": rows, "sha256": sum_so_far} or self._unpack(1):
            raise self._damaged("its rows are not those that were written")

    def _read_header(self) -> Header:
        try:
            line = self._read_line()
        except InvalidInput:
            raise InvalidInput.at(str(self._path), "is not a backup of toolsearch") from None
        if not isinstance(line, dict) or line.pop(_MARK, None) != BACKUP_FORMAT:
            raise InvalidInput.at(str(self._path), "is not a backup of toolsearch, or of a newer form")
        match line:
            case {"made_at": str(made_at), "migrations": [*names], "key_check": str(key_check)}:
                return Header(made_at, [str(name) for name in names], key_check)
        raise self._damaged("its first line is not a backup's")

    def _as_table(self, line: dict[str, Any]) -> TableLine:
        match line:
            case {"table": str(table), "columns": [*columns]}:
                return TableLine(table, columns)
        raise self._damaged("a table's line is not a backup's")

    def _read_line(self) -> BackupRow | dict[str, Any]:
        content = self._unpack(LONGEST_LINE_BYTES + 1)
        if not content.endswith(b"\n"):
            raise self._damaged("it is cut off, or a line is too long")
        self._left_bytes -= len(content)
        if self._left_bytes < 0:
            raise self._damaged("it unpacks to far more than a backup does")
        self._sum.update(content)
        try:
            line = read_json(content)
        except InvalidInput as problem:
            raise self._damaged(str(problem)) from None
        if not isinstance(line, list | dict):
            raise self._damaged("a line is neither a row nor a table")
        return line

    def _unpack(self, most_bytes: int) -> bytes:
        try:
            return self._packed.readline(most_bytes)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise self._damaged("it cannot be unpacked") from None

    def _damaged(self, why: str) -> InvalidInput:
        return InvalidInput.at(str(self._path), f"is damaged: {why}")


@contextmanager
def open_backup(path: Path) -> Iterator[BackupReader]:
    """Raises InvalidInput for a missing file, a file that is no backup, or a damaged first line."""
    try:
        reader = BackupReader(path)
    except OSError as error:
        raise InvalidInput.at(str(path), error.strerror or str(error)) from None
    try:
        yield reader
    finally:
        reader.close()
