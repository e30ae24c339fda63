"""Combines CRC-32 checksums of parts into that of the whole, without reading the parts again.

A checksum is a polynomial over bits. Bytes that follow multiply it by a power of x that depends on their
number alone; then theirs is added, which is XOR.
"""

_POLYNOMIAL = 0xEDB88320  # of CRC-32, its highest power at the lowest bit, as zlib writes it
_ONE = 1 << 31


def shift_for(length: int) -> int:
    """The power of x for a number of bytes. Worth keeping where the same part follows many others."""
    power, at = _ONE, 3  # eight bits a byte
    while length:
        if length & 1:
            power = _multiply(_DOUBLED[at % 32], power)
        length, at = length >> 1, at + 1
    return power


def combine(checksum: int, other: int, shift: int) -> int:
    """The checksum of both parts together; `shift` belongs to the second part's length."""
    return _multiply(shift, checksum) ^ other


def _multiply(one: int, other: int) -> int:
    product, bit = 0, _ONE
    while one:
        if one & bit:
            product ^= other
            one ^= bit
        other = (other >> 1) ^ _POLYNOMIAL if other & 1 else other >> 1
        bit >>= 1
    return product


def _double(count: int) -> list[int]:
    """x to the powers 1, 2, 4, 8 …"""
    powers = [_ONE >> 1]
    while len(powers) < count:
        powers.append(_multiply(powers[-1], powers[-1]))
    return powers


_DOUBLED = _double(32)
