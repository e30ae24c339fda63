"""Errors of the index, each an `Unavailable`: the caller rebuilds, or answers without the index. And that of
encoders, without which words search alone.
"""

from catalog.domain.errors import Unavailable


class IndexDamaged(Unavailable):
    """The index is missing, incomplete or of another format, and must be rebuilt."""

    title = "The search index must be rebuilt"


class IndexUnsafe(Unavailable):
    """The folder belongs to someone else or is writable by others, so its content cannot be trusted."""

    title = "The search index is not private"


class IndexBusy(Unavailable):
    """Another writer holds the index for longer than we wait."""

    title = "The search index is being written"


class UnusableEncoder(Exception):
    """An encoder that cannot be opened, or does not answer. The message says why, without secrets."""
