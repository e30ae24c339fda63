"""Responses as sequences of shared pieces: pieces used by many responses are encoded and compressed once."""

import struct
import zlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property, partial
from threading import RLock

from sessions.offers.rendering import checksums

PieceKey = Hashable
Grew = Callable[[int], None]

SHARED_LEVEL = 6
OWN_LEVEL = 1
PIECE_BYTES = 500  # what keeping a piece takes besides its text
_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_LAST_BLOCK = b"\x03\x00"


class Piece:
    """Part of a response. A lone surrogate, valid in JSON but not in UTF-8, becomes a question mark."""

    def __init__(self, text: str, *, level: int = SHARED_LEVEL, grew: Grew | None = None) -> None:
        """`grew` is called with the bytes of the compressed form once it exists."""
        self.content = text.encode("utf-8", "replace")
        self._level = level
        self._grew = grew

    @cached_property
    def deflated(self) -> bytes:
        """Compressed independently of its neighbours, and ends at a whole byte."""
        squeezer = zlib.compressobj(self._level, zlib.DEFLATED, -zlib.MAX_WBITS)
        deflated = squeezer.compress(self.content) + squeezer.flush(zlib.Z_FULL_FLUSH)
        if self._grew is not None:
            self._grew(len(deflated))
        return deflated

    @cached_property
    def checksum(self) -> int:
        return zlib.crc32(self.content)

    @cached_property
    def shift(self) -> int:
        """Combines this piece's checksum with that of the pieces before it."""
        return checksums.shift_for(len(self.content))


_COMMA = Piece(",")


class PieceCache:
    """Shared pieces within a limit of bytes; least recently used are evicted first."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._kept: OrderedDict[PieceKey, tuple[Piece, int]] = OrderedDict()
        self._lock = RLock()
        self.bytes = 0

    def find(self, key: PieceKey, write: Callable[[], str]) -> Piece:
        """The piece of that key, made from what `write` returns where it is not cached."""
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
                return kept[0]
        piece = Piece(write(), grew=partial(self._add, key))
        with self._lock:
            self._drop(key)  # another thread may have been quicker
            self._kept[key] = (piece, 0)
            self._add(key, len(piece.content) + PIECE_BYTES)
        return piece

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()
            self.bytes = 0

    def _add(self, key: PieceKey, more: int) -> None:
        """Ignores a piece that was evicted meanwhile."""
        with self._lock:
            if key not in self._kept:
                return
            piece, counted = self._kept[key]
            self._kept[key] = (piece, counted + more)
            self.bytes += more
            while self.bytes > self._most_bytes and self._kept:
                self._drop(next(iter(self._kept)))

    def _drop(self, key: PieceKey) -> None:
        _, counted = self._kept.pop(key, (None, 0))
        self.bytes -= counted


class PieceWriter:
    """Collects shared pieces and a response's own text, in order."""

    def __init__(self) -> None:
        self._pieces: list[Piece] = []
        self._own: list[str] = []

    def add(self, text: str) -> None:
        self._own.append(text)

    def add_list(self, items: Iterable[Piece | str]) -> None:
        """Items of a JSON list or object with commas between them; empty ones are left out."""
        first = True
        for item in items:
            if not item:
                continue
            if isinstance(item, str):
                self._own.append(item if first else f",{item}")
            else:
                self._close_own()
                self._pieces += [item] if first else [_COMMA, item]
            first = False

    def finish(self) -> Sequence[Piece]:
        self._close_own()
        return self._pieces

    def _close_own(self) -> None:
        if self._own:
            self._pieces.append(Piece("".join(self._own), level=OWN_LEVEL))
            self._own = []


def join_pieces(pieces: Iterable[Piece]) -> bytes:
    return b"".join(piece.content for piece in pieces)


def gzip(pieces: Iterable[Piece]) -> bytes:
    """The pieces as one gzip stream, without compressing shared pieces again."""
    parts, checksum, length = [_HEADER], 0, 0
    for piece in pieces:
        parts.append(piece.deflated)
        checksum = checksums.combine(checksum, piece.checksum, piece.shift)
        length += len(piece.content)
    parts += [_LAST_BLOCK, struct.pack("<LL", checksum, length & 0xFFFFFFFF)]
    return b"".join(parts)
