"""Checksums put together are those of the texts put together."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions.offers.rendering.checksums import combine, shift_for


@given(st.lists(st.binary(max_size=200), max_size=6))
def test_parts_give_the_checksum_of_the_whole(parts: list[bytes]) -> None:
    checksum = 0
    for part in parts:
        checksum = combine(checksum, zlib.crc32(part), shift_for(len(part)))
    assert checksum == zlib.crc32(b"".join(parts))


@pytest.mark.parametrize("length", [1, 255, 256, 65_535, 65_536, 3_000_017])
def test_long_part(length: int) -> None:
    head, tail = b"a list of tools", bytes(range(251)) * (length // 251 + 1)
    tail = tail[:length]
    assert combine(zlib.crc32(head), zlib.crc32(tail), shift_for(length)) == zlib.crc32(head + tail)
