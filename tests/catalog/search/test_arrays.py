"""Arrays in one file: what is written is what is read, or an error says so."""

import os
from pathlib import Path

import numpy as np
import pytest

from catalog.search import arrays
from catalog.search.arrays import Arrays, open_arrays, write_arrays
from catalog.search.errors import IndexDamaged

ARRAYS: Arrays = {
    "numbers": np.arange(10, dtype=np.int64),
    "empty": np.empty((0, 4), dtype=np.float32),
    "grid": np.eye(3, dtype=np.float32),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_arrays(tmp_path / "file", ARRAYS, {"note": "é"})
    return tmp_path / "file"


def test_arrays_and_notes_come_back(path: Path) -> None:
    file = open_arrays(path)
    assert file.notes == {"note": "é"}
    assert all(np.array_equal(file.arrays[name], array) for name, array in ARRAYS.items())
    assert file.arrays["empty"].shape == (0, 4)


def test_mapped_arrays_cannot_be_written(path: Path) -> None:
    with pytest.raises(ValueError, match="read-only"):
        open_arrays(path).arrays["numbers"][0] = 1


def test_a_mapped_file_outlives_its_removal(path: Path) -> None:
    file = open_arrays(path)
    path.unlink()
    assert file.arrays["numbers"].sum() == 45


def damage(path: Path, place: int) -> None:
    """Later than it was written, also for a clock that moves in steps."""
    content = bytearray(path.read_bytes())
    content[place] ^= 0xFF
    path.write_bytes(content)
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))


@pytest.mark.parametrize("place", [0, 9, 20, -60])
def test_a_changed_byte_is_noticed(path: Path, place: int) -> None:
    damage(path, place)
    with pytest.raises(IndexDamaged):
        open_arrays(path)


def test_a_file_is_summed_up_once_and_again_when_it_is_another(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sums: list[int] = []
    monkeypatch.setattr(arrays, "_check", lambda _, expected: sums.append(expected))
    open_arrays(path)
    assert len(sums) == 0  # this process wrote it
    copy = tmp_path / "copy"
    copy.write_bytes(path.read_bytes())
    open_arrays(copy)
    open_arrays(copy)
    assert len(sums) == 1
    damage(copy, -60)
    open_arrays(copy)
    assert len(sums) == 2


def test_a_process_remembers_the_last_files_only(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sums: list[int] = []
    monkeypatch.setattr(arrays, "_check", lambda _, expected: sums.append(expected))
    for number in range(arrays._REMEMBERED_FILES):
        write_arrays(path.with_name(f"file-{number}"), ARRAYS, {})
    open_arrays(path)
    assert len(sums) == 1


@pytest.mark.parametrize("kept", [0, 5, 40, 200])
def test_a_cut_file_is_noticed(path: Path, kept: int) -> None:
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(IndexDamaged):
        open_arrays(path)


def test_nothing_half_written_stays(path: Path) -> None:
    assert [each.name for each in path.parent.iterdir()] == ["file"]
