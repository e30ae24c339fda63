"""The index folder: one writer, several generations, and a file `CURRENT` that names the live one.

A generation is one file of compiled arrays and the store it came from. It is complete before `CURRENT` is
replaced by a rename, so a crash at any point leaves the last one live; the next write deletes leftovers.
"""

import fcntl
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from catalog.private_folder import make_private_folder
from catalog.search.arrays import open_arrays, write_arrays
from catalog.search.compiled import Compiled
from catalog.search.errors import IndexBusy, IndexDamaged, IndexUnsafe

LOCK_TIMEOUT_SECONDS = 60.0
_LOCK_RETRY_SECONDS = 0.02
_KEPT_GENERATIONS = 2
_OPEN_ATTEMPTS = 20

_CURRENT = "CURRENT"
_NAME = re.compile(r"(?:generation|store)-(\d+)")


@dataclass(frozen=True, slots=True, order=True)
class Generation:
    number: int
    store: int


def prepare_folder(folder: Path) -> None:
    """Create the folder when it is missing. Raises `IndexUnsafe` unless it is ours alone."""
    make_private_folder(folder)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise IndexUnsafe(f"{folder} is not a folder")
    if status.st_uid != os.geteuid():
        raise IndexUnsafe(f"{folder} belongs to another user")
    if status.st_mode & 0o077:
        raise IndexUnsafe(f"{folder} is open to others (mode {stat.S_IMODE(status.st_mode):o}, want 700)")


@contextmanager
def writing(
    folder: Path, timeout_seconds: float = LOCK_TIMEOUT_SECONDS, *, lock: str = "LOCK"
) -> Iterator[None]:
    """Take the writer's lock, which the kernel releases when the process ends.

    Whoever reads the catalog in order to write the index takes a second lock around both.
    """
    prepare_folder(folder)
    descriptor = os.open(folder / lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _wait_for_lock(descriptor, time.monotonic() + timeout_seconds)
        yield
    finally:
        os.close(descriptor)


def read_current(folder: Path) -> Generation:
    """Raises `IndexDamaged` when there is no live generation."""
    try:
        number, store = (folder / _CURRENT).read_text(encoding="ascii").split()
        return Generation(int(number), int(store))
    except (FileNotFoundError, ValueError) as error:
        raise IndexDamaged(f"no index is in force in {folder}") from error


def current_stamp(folder: Path) -> tuple[int, int]:
    """Changes with every new generation; costs one `stat`. (0, 0) when there is none."""
    try:
        status = os.stat(f"{folder}/{_CURRENT}")  # putting a path together takes longer than the look
    except FileNotFoundError:
        return (0, 0)
    return (status.st_ino, status.st_mtime_ns)


def open_current(folder: Path) -> tuple[Generation, Compiled]:
    """Map the live generation; retries where it is replaced meanwhile."""
    prepare_folder(folder)
    for _ in range(_OPEN_ATTEMPTS):
        generation = read_current(folder)
        try:
            file = open_arrays(generation_file(folder, generation.number))
        except FileNotFoundError:
            continue
        return generation, Compiled(file.arrays, file.notes)
    raise IndexDamaged(f"the generation in force in {folder} is gone")


def publish(folder: Path, generation: Generation, compiled: Compiled) -> None:
    """Write a generation, then switch to it. The caller holds the lock."""
    write_arrays(generation_file(folder, generation.number), compiled.arrays, compiled.notes)
    temporary = folder / f"{_CURRENT}.new"
    with temporary.open("w", encoding="ascii") as file:
        file.write(f"{generation.number} {generation.store}\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(folder / _CURRENT)
    _sync_folder(folder)


def next_number(folder: Path) -> int:
    """A number that no generation or store in the folder has had."""
    numbers = [int(match[1]) for path in folder.iterdir() if (match := _NAME.match(path.name))]
    return max(numbers, default=0) + 1


def sweep(folder: Path, current: Generation) -> None:
    """Delete old generations. Readers keep what they have mapped; the last few stay for readers between
    `CURRENT` and its file.
    """
    for path in folder.iterdir():
        match = _NAME.match(path.name)
        if match is None or path == store_folder(folder, current.store):
            continue
        if path.is_dir():
            shutil.rmtree(path)
        elif (
            not current.number - _KEPT_GENERATIONS < int(match[1]) <= current.number or path.suffix == ".new"
        ):
            path.unlink()


def generation_file(folder: Path, number: int) -> Path:
    return folder / f"generation-{number}"


def store_folder(folder: Path, number: int) -> Path:
    return folder / f"store-{number}"


def _wait_for_lock(descriptor: int, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise IndexBusy("another process is writing the search index") from None
            time.sleep(_LOCK_RETRY_SECONDS)
        else:
            return


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
