"""Order-free set hash over an offer's tools, for its tag; an edit updates it in O(change)."""

import hashlib
from collections.abc import Iterable

from catalog.domain.facts import ToolFacts
from catalog.domain.policy import Policy

MODULUS = 1 << 256
DIGEST_CHARS = 20


def hash_line(line: str) -> int:
    """The hash of one tool's line, as a number to be added up."""
    return int.from_bytes(hashlib.sha256(line.encode("utf-8", "surrogatepass")).digest())


def add_to_set_hash(numbers: Iterable[int], *, to: int = 0) -> int:
    return (to + sum(numbers)) % MODULUS


def remove_from_set_hash(numbers: Iterable[int], *, of: int) -> int:
    return (of - sum(numbers)) % MODULUS


def write_digest(policy: Policy, fingerprint: int, locked: Iterable[ToolFacts]) -> str:
    held = sorted(tool.name for tool in locked)
    content = f"{policy!r} {fingerprint} {held!r}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(content).hexdigest()[:DIGEST_CHARS]
