"""A long answer as pieces: those that many answers share are encoded and compressed once."""

import struct
import zlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property, partial
from threading import RLock

from sessions.domain import checksums

Key = Hashable
Grew = Callable[[int], None]

SHARED_LEVEL = 6
OWN_LEVEL = 1
PIECE_BYTES = 500  # what keeping a piece takes besides its text
_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_LAST_BLOCK = b"\x03\x00"


class Piece:
    """Part of an answer. A lone surrogate, which JSON can carry and UTF-8 cannot, becomes a question mark."""

    def __init__(self, text: str, *, level: int = SHARED_LEVEL, grew: Grew | None = None) -> None:
        """`grew` is told of the bytes that the compressed form takes, once there is one."""
        self.content = text.encode("utf-8", "replace")
        self._level = level
        self._grew = grew

    @cached_property
    def deflated(self) -> bytes:
        """Compressed to stand between other pieces: it ends at a whole byte and refers to none of them."""
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
        """What this piece does to the checksum of whatever it follows."""
        return checksums.shift_for(len(self.content))


_COMMA = Piece(",")


class PieceCache:
    """Pieces that answers share, within a number of bytes: the longest unused go first."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._kept: OrderedDict[Key, tuple[Piece, int]] = OrderedDict()
        self._lock = RLock()
        self.bytes = 0

    def find(self, key: Key, write: Callable[[], str]) -> Piece:
        """The piece of that key. Where it is not kept, it is made of what `write` gives."""
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

    def _add(self, key: Key, more: int) -> None:
        """A piece that has gone in the meantime counts for nothing."""
        with self._lock:
            if key not in self._kept:
                return
            piece, counted = self._kept[key]
            self._kept[key] = (piece, counted + more)
            self.bytes += more
            while self.bytes > self._most_bytes and self._kept:
                self._drop(next(iter(self._kept)))

    def _drop(self, key: Key) -> None:
        _, counted = self._kept.pop(key, (None, 0))
        self.bytes -= counted


class Writer:
    """Collects shared pieces and an answer's own text, in order."""

    def __init__(self) -> None:
        self._pieces: list[Piece] = []
        self._own: list[str] = []

    def add(self, text: str) -> None:
        self._own.append(text)

    def add_list(self, items: Iterable[Piece | str]) -> None:
        """Items of a JSON list or object, with commas between them; an empty one is left out."""
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


def join(pieces: Iterable[Piece]) -> bytes:
    return b"".join(piece.content for piece in pieces)


def gzip(pieces: Iterable[Piece]) -> bytes:
    """The same as one gzip stream, without compressing again what was compressed before."""
    parts, checksum, length = [_HEADER], 0, 0
    for piece in pieces:
        parts.append(piece.deflated)
        checksum = checksums.follow(checksum, piece.checksum, piece.shift)
        length += len(piece.content)
    parts += [_LAST_BLOCK, struct.pack("<LL", checksum, length & 0xFFFFFFFF)]
    return b"".join(parts)
