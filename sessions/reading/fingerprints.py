"""What an offer's tag is made of: a sum over its tools, so that a change costs as much as what it changed."""

import hashlib
from collections.abc import Iterable

from catalog.domain.facts import ToolFacts
from catalog.domain.policy import Policy

MODULUS = 1 << 256
DIGEST_CHARS = 20


def number_of(line: str) -> int:
    """One tool's part of the sum."""
    return int.from_bytes(hashlib.sha256(line.encode("utf-8", "surrogatepass")).digest())


def add(numbers: Iterable[int], *, to: int = 0) -> int:
    return (to + sum(numbers)) % MODULUS


def take(numbers: Iterable[int], *, of: int) -> int:
    return (of - sum(numbers)) % MODULUS


def write_digest(policy: Policy, fingerprint: int, locked: Iterable[ToolFacts]) -> str:
    held = sorted(tool.name for tool in locked)
    content = f"{policy!r} {fingerprint} {held!r}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(content).hexdigest()[:DIGEST_CHARS]
