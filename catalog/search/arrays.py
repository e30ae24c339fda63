"""Named numpy arrays in one file, mapped read-only: a process opens megabytes in a moment and shares them
with others.

Layout: magic, length of the header, header (JSON: where each array lies, a checksum, the caller's notes),
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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from catalog.search.errors import IndexDamaged

_MAGIC = b"tsarray1"
_HEAD = struct.Struct("<8sQ")
_ALIGN = 64

Arrays = dict[str, NDArray[Any]]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ArrayFile:
    arrays: Arrays
    notes: dict[str, Any]
    size_bytes: int


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]], notes: Mapping[str, Any]) -> None:
    """Write a complete file and make it durable; a half-written one is never under `path`."""
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


def open_arrays(path: Path) -> ArrayFile:
    """Map a file. Raises `FileNotFoundError`, or `IndexDamaged` when a byte of it is not what was written."""
    with path.open("rb") as file:
        size_bytes = os.fstat(file.fileno()).st_size
        if size_bytes < _HEAD.size:
            raise IndexDamaged(f"{path.name} is cut short")
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    try:
        return _read(mapped, size_bytes)
    except (ValueError, KeyError, TypeError) as error:
        raise IndexDamaged(f"{path.name} cannot be read: {error}") from error


def _read(mapped: mmap.mmap, size_bytes: int) -> ArrayFile:
    magic, header_bytes = _HEAD.unpack_from(mapped)
    if magic != _MAGIC or _HEAD.size + header_bytes > size_bytes:
        raise ValueError("not an array file")
    header = json.loads(mapped[_HEAD.size : _HEAD.size + header_bytes])
    start = _padded(_HEAD.size + header_bytes)
    arrays = {name: _view(mapped, start, place) for name, place in header["arrays"].items()}
    checksum = 0
    for array in arrays.values():
        checksum = zlib.crc32(array.data.cast("B") if array.size else b"", checksum)
    if checksum != header["crc32"]:
        raise ValueError("the checksum differs")
    return ArrayFile(arrays, header["notes"], size_bytes)


def _view(mapped: mmap.mmap, start: int, place: dict[str, Any]) -> NDArray[Any]:
    shape = tuple(place["shape"])
    count = int(np.prod(shape, dtype=np.int64))
    if count == 0:
        return np.empty(shape, dtype=place["dtype"])
    return np.frombuffer(mapped, place["dtype"], count, start + place["offset"]).reshape(shape)


def _padded(size_bytes: int) -> int:
    return -(-size_bytes // _ALIGN) * _ALIGN
