"""Stores named numpy arrays in one file that processes map read-only and share.

Layout: magic, length of the header, header (JSON: position of each array, checksum, the caller's notes),
padding, data.
"""

import json
import mmap
import os
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from catalog.process_memory import remember
from catalog.search.errors import IndexDamaged

# How many files a process remembers to have found sound. Summing up a large one takes longer than using it.
_REMEMBERED_FILES = 8
_MAGIC = b"tsarray1"
_HEAD = struct.Struct("<8sQ")
_ALIGN = 64

Arrays = dict[str, NDArray[Any]]
Mask = NDArray[np.bool_]


class _SoundFiles:
    """Files that this process has written or verified, by modification time and size."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, ...], None] = {}
        self._lock = Lock()

    def add(self, status: os.stat_result) -> None:
        with self._lock:
            self._known[_identity(status)] = None
            while len(self._known) > _REMEMBERED_FILES:
                del self._known[next(iter(self._known))]

    def forget(self) -> None:
        with self._lock:
            self._known.clear()

    def __contains__(self, status: os.stat_result) -> bool:
        return _identity(status) in self._known


_sound_files = _SoundFiles()
remember("files known to be sound", _sound_files.forget)


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


@dataclass(frozen=True, slots=True)
class ArrayFile:
    arrays: Arrays
    notes: dict[str, Any]
    size_bytes: int


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]], notes: Mapping[str, Any]) -> None:
    """Write the file atomically and durably."""
    blocks = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    places, checksum, offset = {}, 0, 0
    for name, block in blocks.items():
        places[name] = {"dtype": block.dtype.str, "shape": block.shape, "offset": offset}
        checksum = zlib.crc32(block.data.cast("B") if block.size else b"", checksum)
        offset += _padded(block.nbytes)
    header = json.dumps({"arrays": places, "crc32": checksum, "notes": dict(notes)}).encode()
    temporary = path.with_name(path.name + ".new")
    with temporary.open("wb") as file:
        file.write(_HEAD.pack(_MAGIC, len(header)))
        file.write(header.ljust(_padded(_HEAD.size + len(header)) - _HEAD.size))
        for block in blocks.values():
            file.write(block.data.cast("B") if block.size else b"")
            file.write(bytes(_padded(block.nbytes) - block.nbytes))
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    _sound_files.add(path.stat())


def open_arrays(path: Path) -> ArrayFile:
    """Map a file. Raises `FileNotFoundError`, or `IndexDamaged` when its checksum is wrong."""
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        if status.st_size < _HEAD.size:
            raise IndexDamaged(f"{path.name} is cut short")
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    try:
        opened, checksum = _read(mapped, status.st_size)
        if status not in _sound_files:
            _check(opened.arrays, checksum)
            _sound_files.add(status)
    except (ValueError, KeyError, TypeError) as error:
        raise IndexDamaged(f"{path.name} cannot be read: {error}") from error
    return opened


def _read(mapped: mmap.mmap, size_bytes: int) -> tuple[ArrayFile, int]:
    """The arrays and the checksum in the header."""
    magic, header_bytes = _HEAD.unpack_from(mapped)
    if magic != _MAGIC or _HEAD.size + header_bytes > size_bytes:
        raise ValueError("not an array file")
    header = json.loads(mapped[_HEAD.size : _HEAD.size + header_bytes])
    start = _padded(_HEAD.size + header_bytes)
    arrays = {name: _view(mapped, start, place) for name, place in header["arrays"].items()}
    return ArrayFile(arrays, header["notes"], size_bytes), header["crc32"]


def _check(arrays: Arrays, expected: int) -> None:
    checksum = 0
    for array in arrays.values():
        checksum = zlib.crc32(array.data.cast("B") if array.size else b"", checksum)
    if checksum != expected:
        raise ValueError("the checksum differs")


def _view(mapped: mmap.mmap, start: int, place: dict[str, Any]) -> NDArray[Any]:
    shape = tuple(place["shape"])
    count = int(np.prod(shape, dtype=np.int64))
    if count == 0:
        return np.empty(shape, dtype=place["dtype"])
    return np.frombuffer(mapped, place["dtype"], count, start + place["offset"]).reshape(shape)


def _padded(size_bytes: int) -> int:
    return -(-size_bytes // _ALIGN) * _ALIGN
