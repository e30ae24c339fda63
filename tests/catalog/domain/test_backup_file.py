"""A backup file is taken whole or refused in one line, whatever was done to it."""

import gzip
import json
from pathlib import Path

import pytest

from catalog.domain import backup_file
from catalog.domain.backup_file import BackupWriter, Header, TableLine, open_backup
from catalog.domain.errors import InvalidInput

HEADER = Header(made_at="2026-11-16T08:00:00+00:00", migrations=["catalog.0001"], key_check="ab")
TABLE = TableLine("catalog.server", ["id", "name"])


def write(path: Path, *rows: list[object]) -> Path:
    with path.open("wb") as file:
        writer = BackupWriter(file, HEADER)
        writer.begin_table(TABLE)
        for row in rows:
            writer.add(row)
        writer.write_checksum()
    return path


def read(path: Path) -> list[object]:
    with open_backup(path) as backup:
        return list(backup.lines())


def refusal(path: Path) -> str:
    with pytest.raises(InvalidInput) as refused:
        read(path)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def pack(path: Path, *lines: object) -> Path:
    path.write_bytes(gzip.compress(b"".join(json.dumps(line).encode() + b"\n" for line in lines)))
    return path


def unpack(path: Path) -> list[object]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def test_comes_back_as_it_was_written(tmp_path: Path) -> None:
    rows: list[list[object]] = [[1, "gît\u2028hub"], [2, None]]
    path = write(tmp_path / "b", *rows)
    with open_backup(path) as backup:
        assert backup.header == HEADER
        assert list(backup.lines()) == [TABLE, *rows]


def test_rows_that_pack_like_a_bomb_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backup_file, "ALWAYS_ALLOWED_BYTES", 100_000)
    rows: list[list[object]] = [[number, "x" * 50_000] for number in range(40)]
    path = write(tmp_path / "b", *rows)
    unpacked_bytes = len(gzip.decompress(path.read_bytes()))
    assert unpacked_bytes > 250 * len(path.read_bytes().rstrip(b"\0"))
    assert path.stat().st_size < unpacked_bytes / 190
    assert read(path) == [TABLE, *rows]


def test_other_rows_are_not_made_longer(tmp_path: Path) -> None:
    path = write(tmp_path / "b", *([number, "x" * 1000] for number in range(1000)))
    assert path.stat().st_size < 20_000


class TestRefuses:
    @pytest.mark.parametrize("content", [b"", b"hello", b"\x1f\x8b", gzip.compress(b"{}\n"), b"PK\x03\x04"])
    def test_foreign_file(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "b"
        path.write_bytes(content)
        assert "is not a backup" in refusal(path)

    def test_missing_file_and_folder(self, tmp_path: Path) -> None:
        assert "No such file" in refusal(tmp_path / "b")
        assert "Is a directory" in refusal(tmp_path)

    def test_every_way_of_being_cut_off(self, tmp_path: Path) -> None:
        whole = write(tmp_path / "b", [1, "a"], [2, "b"]).read_bytes()
        path = tmp_path / "cut"
        for length in range(len(whole)):
            path.write_bytes(whole[:length])
            assert "backup" in refusal(path) or "damaged" in refusal(path)

    def test_every_flipped_byte_of_the_packed_rows(self, tmp_path: Path) -> None:
        whole = write(tmp_path / "b", [1, "a"], [2, "b"]).read_bytes()
        path = tmp_path / "flipped"
        for place in range(
            10, len(whole)
        ):  # before it stands gzip's own header, of which time and name are free
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
            assert refusal(path)

    def test_changed_dropped_and_added_row(self, tmp_path: Path) -> None:
        lines = unpack(write(tmp_path / "b", [1, "a"], [2, "b"]))
        for changed in (
            [*lines[:2], [1, "x"], *lines[3:]],
            [*lines[:2], *lines[3:]],
            [*lines[:3], lines[2], *lines[3:]],
            [*lines, [3, "c"]],
            lines[:-1],
        ):
            assert "damaged" in refusal(pack(tmp_path / "c", *changed))

    def test_newer_form(self, tmp_path: Path) -> None:
        first, *rest = unpack(write(tmp_path / "b"))
        assert isinstance(first, dict)
        assert "newer form" in refusal(pack(tmp_path / "c", {**first, "toolsearch_backup": 2}, *rest))

    @pytest.mark.parametrize(
        "line", [{"table": ["x"], "columns": []}, {"table": "x"}, 7, "x", None, {"table": "x", "columns": 1}]
    )
    def test_line_of_another_shape(self, tmp_path: Path, line: object) -> None:
        first, *rest = unpack(write(tmp_path / "b"))
        assert "damaged" in refusal(pack(tmp_path / "c", first, line, *rest))

    def test_deeply_nested_row(self, tmp_path: Path) -> None:
        first, *_ = unpack(write(tmp_path / "b"))
        bomb = json.dumps(first).encode() + b"\n" + b"[" * 200_000 + b"]" * 200_000 + b"\n"
        (tmp_path / "c").write_bytes(gzip.compress(bomb))
        assert "nested too deeply" in refusal(tmp_path / "c")

    def test_bomb_before_it_is_unpacked(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(backup_file, "ALWAYS_ALLOWED_BYTES", 100_000)
        first, table, *_ = unpack(write(tmp_path / "b"))
        path = pack(tmp_path / "c", first, table, *([1, "a" * 20_000] for _ in range(3_000)))
        assert path.stat().st_size * 200 < 50_000_000, "must be a bomb to prove anything"
        unpacked: list[object] = []
        with open_backup(path) as backup, pytest.raises(InvalidInput, match="far more than a backup does"):
            unpacked.extend(backup.lines())
        assert len(unpacked) < 700

    def test_endless_line(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(backup_file, "LONGEST_LINE_BYTES", 10_000)
        assert "too long" in refusal(write(tmp_path / "b", [1, "a" * 20_000]))
