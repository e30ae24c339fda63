"""The index folder: private, one writer, and always one usable generation."""

import os
from pathlib import Path

import pytest

from catalog.search import generations
from catalog.search.errors import IndexBusy, IndexDamaged, IndexUnsafe
from catalog.search.generations import Generation
from tests.catalog.search.samples import compile_tools


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    generations.prepare_folder(tmp_path / "index")
    return tmp_path / "index"


class TestPrivacy:
    def test_the_folder_is_made_private(self, folder: Path) -> None:
        assert folder.stat().st_mode & 0o777 == 0o700

    @pytest.mark.parametrize("mode", [0o750, 0o701, 0o777])
    def test_a_folder_open_to_others_is_refused(self, folder: Path, mode: int) -> None:
        folder.chmod(mode)
        with pytest.raises(IndexUnsafe, match="open to others"):
            generations.open_current(folder)

    def test_a_link_is_refused(self, folder: Path, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(folder)
        with pytest.raises(IndexUnsafe, match="not a folder"):
            generations.prepare_folder(tmp_path / "link")

    def test_a_folder_of_another_user_is_refused(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
        with pytest.raises(IndexUnsafe, match="another user"), generations.writing(folder):
            pass


class TestLock:
    def test_a_second_writer_waits_in_vain(self, folder: Path) -> None:
        with (
            generations.writing(folder),
            pytest.raises(IndexBusy),
            generations.writing(folder, timeout_seconds=0.05),
        ):
            pass

    def test_the_lock_is_free_again_after_a_failure(self, folder: Path) -> None:
        with pytest.raises(RuntimeError), generations.writing(folder):
            raise RuntimeError
        with generations.writing(folder, timeout_seconds=0):
            pass


class TestSwitch:
    def test_there_is_none_at_first(self, folder: Path) -> None:
        assert generations.current_stamp(folder) == (0, 0)
        with pytest.raises(IndexDamaged):
            generations.open_current(folder)

    def test_the_published_one_is_in_force(self, folder: Path) -> None:
        generations.publish(folder, Generation(3, 1), compile_tools())
        generation, compiled = generations.open_current(folder)
        assert generation == Generation(3, 1)
        assert len(compiled) == len(compile_tools())

    def test_the_stamp_changes_with_every_switch(self, folder: Path) -> None:
        stamps = set()
        for number in range(5):
            generations.publish(folder, Generation(number, 1), compile_tools())
            stamps.add(generations.current_stamp(folder))
        assert len(stamps) == 5

    @pytest.mark.parametrize("content", ["", "x y", "1", "1 2 3", "7 7"])
    def test_a_bad_pointer_is_damage(self, folder: Path, content: str) -> None:
        generations.publish(folder, Generation(1, 1), compile_tools())
        (folder / "CURRENT").write_text(content)
        with pytest.raises(IndexDamaged):
            generations.open_current(folder)

    def test_numbers_are_never_used_again(self, folder: Path) -> None:
        assert generations.next_number(folder) == 1
        generations.store_folder(folder, 8).mkdir()
        generations.publish(folder, Generation(4, 8), compile_tools())
        assert generations.next_number(folder) == 9


def test_sweeping_leaves_what_readers_may_be_about_to_open(folder: Path) -> None:
    for number in range(1, 6):
        generations.publish(folder, Generation(number, 2), compile_tools())
    for store in (1, 2, 7):
        generations.store_folder(folder, store).mkdir()
    generations.generation_file(folder, 9).write_bytes(b"left by a crash")
    (folder / "generation-5.new").write_bytes(b"left by a crash")
    generations.sweep(folder, Generation(5, 2))
    assert {path.name for path in folder.iterdir()} == {"CURRENT", "generation-4", "generation-5", "store-2"}
